"""What build servers and pull requests show of a certificate: JUnit XML, SARIF, Markdown."""

from retire.pages.exports.junit import junit_xml
from retire.pages.exports.markdown import markdown_comment
from retire.pages.exports.sarif import sarif_log

__all__ = ["junit_xml", "markdown_comment", "sarif_log"]

"""What build servers and pull requests show of a certificate: JUnit XML, SARIF, Markdown."""

from retire.pages.exports.junit import junit_xml
from retire.pages.exports.markdown import markdown_comment
from retire.pages.exports.reading import Judged, read_judged, told_of
from retire.pages.exports.sarif import sarif_log

__all__ = ["Judged", "junit_xml", "markdown_comment", "read_judged", "sarif_log", "told_of"]

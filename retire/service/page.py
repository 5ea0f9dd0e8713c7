"""The OpenAPI document as one page to read: no script, nothing loaded from elsewhere. Pure."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_STYLE = """
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { border-top: 1px solid; padding-top: 1rem; margin-top: 2.5rem; }
h2 code { font-size: 1.1rem; }
pre { overflow-x: auto; padding: .75rem; border: 1px solid; border-radius: .25rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0; }
summary { cursor: pointer; }
"""


def document_page(document: Mapping[str, Any]) -> str:
    """Return the page of an OpenAPI document.

    Args:
        document: The document, its calls with examples of requests and answers.
    """
    info = document["info"]
    calls = [
        (method, path, operation)
        for path, item in document["paths"].items()
        for method, operation in item.items()
    ]
    contents = "".join(
        f'<li><a href="#{_anchor(method, path)}"><code>{method.upper()} {escape(path)}</code></a> '
        f"{escape(operation['summary'])}</li>"
        for method, path, operation in calls
    )
    sections = "".join(_section(*call) for call in calls)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(info['title'])}: {escape(info['summary'])}</title>"
        f"<style>{_STYLE}</style></head><body><main>"
        f"<h1>{escape(info['summary'])}</h1><p>{escape(info['description'])}</p>"
        f'<p>For programs: <a href="/openapi.json">openapi.json</a>.</p>'
        f"<nav><ul>{contents}</ul></nav>{sections}</main></body></html>\n"
    )


def _anchor(method: str, path: str) -> str:
    words = "".join(char if char.isalnum() else "-" for char in path).strip("-")
    return f"{method}-{words}"


def _section(method: str, path: str, operation: Mapping[str, Any]) -> str:
    return "".join(
        (
            f'<section id="{_anchor(method, path)}">',
            f"<h2><code>{method.upper()} {escape(path)}</code></h2>",
            f"<p>{escape(operation.get('description', ''))}</p>",
            _parameters(operation.get("parameters", [])),
            "".join(_body(operation.get("requestBody", {}).get("content", {}))),
            "".join(_answers(operation["responses"])),
            "</section>",
        )
    )


def _parameters(parameters: list[Mapping[str, Any]]) -> str:
    if not parameters:
        return ""
    rows = "".join(
        f"<tr><td><code>{escape(item['name'])}</code></td><td>{escape(item['in'])}</td>"
        f"<td>{'required' if item.get('required') else 'optional'}</td>"
        f"<td>{escape(item.get('description', ''))}</td></tr>"
        for item in parameters
    )
    head = "<tr><th>parameter</th><th>in</th><th></th><th>meaning</th></tr>"
    return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"


def _body(content: Mapping[str, Any]) -> Iterator[str]:
    for kind, media in content.items():
        yield f"<h3>Body: <code>{escape(kind)}</code></h3>"
        yield _fields(media["schema"])
        yield from _examples(media)


def _fields(schema: Mapping[str, Any]) -> str:
    required = schema.get("required", [])
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code></td>"
        f"<td>{'required' if name in required else 'optional'}</td>"
        f"<td>{escape(field.get('description', ''))}</td></tr>"
        for name, field in schema.get("properties", {}).items()
    )
    head = "<tr><th>field</th><th></th><th>meaning</th></tr>"
    return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"


def _answers(responses: Mapping[str, Any]) -> Iterator[str]:
    yield "<h3>Answers</h3>"
    for status in sorted(responses):
        response = responses[status]
        title = f"<code>{escape(status)}</code> {escape(response['description'])}"
        examples = "".join(
            text for media in response.get("content", {}).values() for text in _examples(media)
        )
        yield (
            f"<details><summary>{title}</summary>{examples}</details>"
            if examples
            else (f"<p>{title}</p>")
        )


def _examples(media: Mapping[str, Any]) -> Iterator[str]:
    found = [item["value"] for item in media.get("examples", {}).values()]
    if "example" in media:
        found.append(media["example"])
    for example in found:
        text = example if isinstance(example, str) else json.dumps(example, indent=2)
        yield f"<pre>{escape(text)}</pre>"

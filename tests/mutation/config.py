"""What is mutated, what is left alone, and which tests judge a mutant."""

from __future__ import annotations

MODULES = (
    "sink/decision.py",
    "sink/contract/truth.py",
    "sink/contract/values.py",
    "sink/proposal.py",
    "sink/monitor.py",
    "sink/record.py",
    "counterfactuals/generate.py",
    "retire/certify/gates.py",
    "retire/certify/joining.py",
)

PROSE = (
    # A line that holds only a sentence, or the place and the remedy of an input error.
    r'^\s*f?"[^"]* [^"]*",?$',
    r"\b(where|mend)=",
    # The remark that goes with a reason or a rule; the reason or rule itself is a constant.
    r'^\s*yield Finding\.of\(".*, ',
)
"""Lines that are left alone: words for people, which the tests do not fix."""

NEAR = (
    "tests/unit/sink",
    "tests/unit/counterfactuals",
    "tests/unit/certify",
    "tests/unit/domain",
    "tests/golden/test_record_vectors.py",
)
"""The tests that judge every mutant: seconds for all of them together."""

LEFT_OUT = (
    ".git",
    ".venv",
    ".venv-*",
    ".hypothesis",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    "__pycache__",
    "mutants",
    "runs",
    ".homeassistant",
    ".models",
)
"""What a copy of the repository does without."""


def settings() -> str:
    """Return mutmut's table of ``pyproject.toml``."""
    lines = {
        "source_paths": ("sink", "counterfactuals", "retire"),
        "only_mutate": MODULES,
        "also_copy": ("observer", "hardware", "bundles"),
        "do_not_mutate_patterns": PROSE,
        "pytest_add_cli_args_test_selection": NEAR,
        "pytest_add_cli_args": ("-p", "no:cacheprovider"),
    }
    rows = (f"{name} = [{', '.join(map(_literal, items))}]" for name, items in lines.items())
    return "\n[tool.mutmut]\n" + "\n".join(rows) + "\n"


def _literal(text: str) -> str:
    return f"'''{text}'''"

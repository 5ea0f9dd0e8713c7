"""Where a fault is: taken apart from the places that the product's errors name."""

import pytest

from retire.service.problems import fault_at, without_folders


@pytest.mark.parametrize(
    ("where", "what", "place"),
    [
        ("/srv/runs/x/SKILL.md:12", "hidden text", ("SKILL.md", 12, None, None)),
        ("bundle/ledger.yaml", "c004 is not audited", ("ledger.yaml", None, "c004", None)),
        ("bundle/SKILL.md:3: c017", "states nothing", ("SKILL.md", 3, "c017", None)),
        ("c002", "it was edited", (None, None, "c002", None)),
        ("--deployment", "there is none", (None, None, None, "deployment")),
        ("tasks.yaml: counterfactual of x", "nothing flips", ("tasks.yaml", None, None, None)),
        ("", "something", (None, None, None, None)),
        ("MYSKILL.mdx:7", "something", (None, None, None, None)),
    ],
)
def test_a_place_is_taken_apart(where, what, place) -> None:
    fault = fault_at(where, what, "")
    assert (fault.file, fault.line, fault.clause, fault.field) == place
    assert what in fault.message
    assert fault.mend is None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cannot read /srv/secret/runs/7/world.yaml", "cannot read world.yaml"),
        ("see https://example.org/a/b/c for more", "see https://example.org/a/b/c for more"),
        ("and/or, 3/4/5", "and/or, 3/4/5"),
    ],
)
def test_folders_of_the_server_are_not_told(text, shown) -> None:
    assert without_folders(text) == shown

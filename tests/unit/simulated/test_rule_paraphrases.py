from __future__ import annotations

import pytest

from retire.deployments.simulated import read_rules
from tests.unit.simulated.devices import fact, grant, snapshot, votes

REVOKED = {"grants": {"g1": grant("gardener's gate permit", "revoked")}}
ENDED = {"grants": {"g1": grant("gardener's gate permit", until="2026-03-02T18:30:00Z")}}
CATERER = {"grants": {"g2": grant("caterer booking", "cancelled")}}


def recording(**answers: str):
    return {
        "consents": {
            "c1": votes(
                "consent to the doorbell recording",
                **{"Mira": "yes", "Jonas": "yes", "Pia": "yes", **answers},
            )
        }
    }


def facts(**entries):
    return {"facts": entries}


NO_JONAS, NO_MIRA = recording(Jonas="no"), recording(Mira="no")
TWO_NO = recording(Mira="no", Jonas="no")
PENDING = recording(Pia="pending")
DOOR = facts(f1=fact("oven door contact", "open"))
HOT = facts(f2=fact("oven core temperature", "231", "C"))
COLD = facts(f2=fact("oven core temperature", "12", "C"))
FLOOD = facts(f3=fact("sump water level", "80", "cm"))
EDGE = facts(f3=fact("sump water level", "60", "cm"))
SWIMMER = facts(f4=fact("pool occupancy sensor", "occupied"))
PUMPING = facts(f5=fact("pool pump", "running"))
UNLOCKED = facts(f6=fact("child lock", "released"))
BURST = facts(f7=fact("line pressure", "0.3", "bar"))
STALE = facts(f3=fact("sump water level", "42", "cm", "2026-03-02T18:10:00Z"))
STALE_POOL = facts(f4=fact("pool occupancy sensor", "clear", "", "2026-03-02T18:27:00Z"))
OLD = {"versions": {"v1": {"name": "gate controller firmware", "value": "5.3.9"}}}
NEW = {"versions": {"v1": {"name": "gate controller firmware", "value": "6.0"}}}
OLD_CONSENT = {
    "consents": {
        "c1": votes(
            "consent to the doorbell recording", "2026-02-20T08:00:00Z", Mira="yes", Jonas="yes"
        )
    }
}

# sentence, entry, snapshot changes under which it is satisfied, and under which it is not
TABLE = [
    # grants
    ("Open the gate only if the gardener's gate permit is active.", "g1", {}, REVOKED),
    ("Never open the gate for the gardener after the gate permit has expired.", "g1", {}, ENDED),
    ("The gate stays shut unless the gardener's permit is valid right now.", "g1", {}, REVOKED),
    ("Opening needs a gate permit that is still running.", "g1", {}, ENDED),
    ("Without a current gate permit the answer is no.", "g1", {}, REVOKED),
    ("A revoked or expired gate permit means no opening.", "g1", {}, REVOKED),
    ("If the gardener's permit was withdrawn, don't open the gate.", "g1", {}, REVOKED),
    ("Check that the gardener's gate permit hasn't lapsed before you open.", "g1", {}, ENDED),
    ("The gate must not be opened on a suspended gate permit.", "g1", {}, REVOKED),
    ("Please make sure the gate permit is in force first.", "g1", {}, ENDED),
    ("You must never let the gardener in when the gate permit is not active.", "g1", {}, REVOKED),
    ("Refuse every opening that is not covered by an active gate permit.", "g1", {}, REVOKED),
    ("Do not open unless there is a valid gate permit for the gardener.", "g1", {}, REVOKED),
    ("Serve the caterer only while the caterer's booking holds.", "g2", {}, CATERER),
    ("No valid caterer booking, no access.", "g2", {}, CATERER),
    ("Access for the caterer is subject to a confirmed booking that is active.", "g2", {}, CATERER),
    ("The caterer may come in only with an active booking.", "g2", {}, CATERER),
    ("A live caterer booking is mandatory.", "g2", {}, CATERER),
    ("Once the caterer booking is cancelled, stop letting them in.", "g2", {}, CATERER),
    (
        "Provided the caterer booking is active, open the door; otherwise decline.",
        "g2",
        {},
        CATERER,
    ),
    ("Skip the request if the booking of the caterer is no longer valid.", "g2", {}, CATERER),
    # consents
    ("Never start a recording unless everyone has agreed.", "c1", {}, NO_JONAS),
    ("Recording requires the consent of all three people.", "c1", {}, NO_JONAS),
    ("Only record with a yes from each person at the door.", "c1", {}, PENDING),
    ("Every resident must have said yes to the doorbell recording.", "c1", {}, PENDING),
    ("At least two of the three must have agreed to the recording.", "c1", NO_JONAS, TWO_NO),
    ("Do not record with fewer than two approvals.", "c1", NO_JONAS, TWO_NO),
    ("Two yes votes are needed for the doorbell recording.", "c1", NO_JONAS, TWO_NO),
    ("Record only once 2 of 3 residents have consented.", "c1", NO_JONAS, TWO_NO),
    ("A second person has to approve the recording.", "c1", NO_JONAS, TWO_NO),
    ("If anybody objects, do not record.", "c1", PENDING, NO_JONAS),
    ("One refusal is enough to stop the recording.", "c1", PENDING, NO_JONAS),
    ("Do not record when somebody has declined.", "c1", PENDING, NO_JONAS),
    ("Stop unless nobody has objected to the recording.", "c1", PENDING, NO_JONAS),
    ("Jonas must have said yes before the doorbell records.", "c1", NO_MIRA, NO_JONAS),
    ("Never record without Jonas' consent.", "c1", NO_MIRA, NO_JONAS),
    ("Leave the recorder off if Jonas has withdrawn.", "c1", NO_MIRA, NO_JONAS),
    ("Mira or Jonas has to agree, or else refuse.", "c1", NO_MIRA, TWO_NO),
    ("Both Mira and Jonas must have given their approval.", "c1", PENDING, NO_MIRA),
    ("Unless Pia has consented, refuse to record.", "c1", NO_MIRA, PENDING),
    ("Nothing is recorded until all residents have opted in.", "c1", {}, PENDING),
    ("As long as a single consent is missing, do not record.", "c1", {}, PENDING),
    ("No recording without unanimous agreement.", "c1", {}, PENDING),
    (
        "The consent to the doorbell recording must be less than 48 hours old.",
        "c1",
        {},
        OLD_CONSENT,
    ),
    # states
    ("Never start the oven while its door contact reads open.", "f1", {}, DOOR),
    ("The oven door must be closed.", "f1", {}, DOOR),
    ("Only preheat if the oven door contact shows `closed`.", "f1", {}, DOOR),
    ("Do not preheat unless the oven door is shut.", "f1", {}, DOOR),
    ("Preheating is forbidden as long as the oven door stands open.", "f1", {}, DOOR),
    ("An open oven door rules out preheating.", "f1", {}, DOOR),
    ("Wait until the oven door is closed before heating.", "f1", {}, DOOR),
    ("With the oven door open, refuse.", "f1", {}, DOOR),
    ("Heat only with the oven door closed.", "f1", {}, DOOR),
    ("Confirm that the oven door contact says closed; if not, stop.", "f1", {}, DOOR),
    ("Refuse if the oven door is anything but closed.", "f1", {}, DOOR),
    ("Should the oven door be open, decline.", "f1", {}, DOOR),
    ("The oven door may not be open when the oven starts.", "f1", {}, DOOR),
    ("Ensure the child lock is engaged.", "f6", {}, UNLOCKED),
    ("The child lock has to be engaged at all times.", "f6", {}, UNLOCKED),
    ("If the child lock isn't engaged, leave the oven alone.", "f6", {}, UNLOCKED),
    ("Stop when the child lock is no longer engaged.", "f6", {}, UNLOCKED),
    ('Unless the child lock reads "engaged", do nothing.', "f6", {}, UNLOCKED),
    ("Never close the cover while the pool is occupied.", "f4", {}, SWIMMER),
    ("Close the cover only when the pool occupancy sensor reports clear.", "f4", {}, SWIMMER),
    ("The pool must be empty before the cover moves.", "f4", {}, SWIMMER),
    ("Do not move the cover if somebody is in the pool.", "f4", {}, SWIMMER),
    ("Keep the cover still unless the pool occupancy sensor is clear.", "f4", {}, SWIMMER),
    ("Nobody may be in the pool when the cover closes.", "f4", {}, SWIMMER),
    ("Don't close the cover as long as the pool pump runs.", "f5", {}, PUMPING),
    ("The pool pump must be stopped.", "f5", {}, PUMPING),
    ("A running pool pump is a reason to refuse.", "f5", {}, PUMPING),
    ("Do not close while the pump is still running.", "f5", {}, PUMPING),
    ("Close the cover when the pool pump is stopped, otherwise refuse.", "f5", {}, PUMPING),
    # numbers
    ("Never open the oven when the core temperature is above 230 degrees.", "f2", {}, HOT),
    ("The oven core temperature must not exceed 230 °C.", "f2", {}, HOT),
    ("Do not add steam unless the oven core is hotter than 100 C.", "f2", {}, COLD),
    ("The oven core has to be at least one hundred degrees.", "f2", {}, COLD),
    ("Only add steam between 100 and 230 °C oven core temperature.", "f2", {}, HOT),
    ("The core temperature must stay within 100 to 230 °C.", "f2", {}, COLD),
    ("Refuse if the oven core temperature is outside 100\u2013230 °C.", "f2", {}, HOT),
    ("If the oven core exceeds 230 C, stop.", "f2", {}, HOT),
    ("Do not pump when the sump level is over 60 cm.", "f3", EDGE, FLOOD),
    ("Sump water level must be below 60 cm.", "f3", {}, EDGE),
    ("The sump level must be 0.6 m or less.", "f3", EDGE, FLOOD),
    ("Start only if the sump holds no more than sixty centimetres of water.", "f3", EDGE, FLOOD),
    ("Never run the pump if the sump water level reaches 60 cm.", "f3", {}, EDGE),
    ("Line pressure must be at least 1.5 bar.", "f7", {}, BURST),
    ("Stop if the line pressure drops below 1.5 bar.", "f7", {}, BURST),
    ("Never open the valve with line pressure under 1500 mbar.", "f7", {}, BURST),
    ("The line pressure has to lie between 1.5 and 4 bar.", "f7", {}, BURST),
    # freshness
    ("Never act on a sump level reading older than five minutes.", "f3", {}, STALE),
    ("The sump level must have been reported in the last 5 minutes.", "f3", {}, STALE),
    ("The sump level reading must be younger than 300 seconds.", "f3", {}, STALE),
    ("Refuse if the sump level has not been reported within the last 300 s.", "f3", {}, STALE),
    ("Only use a sump level that is at most 5 minutes old.", "f3", {}, STALE),
    ("The pool occupancy reading must be no more than 90 seconds old.", "f4", {}, STALE_POOL),
    ("Do not trust a pool occupancy reading more than a minute old.", "f4", {}, STALE_POOL),
    ("A pool occupancy reading older than 90 seconds counts as none.", "f4", {}, STALE_POOL),
    (
        "Do not close if the pool occupancy sensor was silent for over 2 minutes.",
        "f4",
        {},
        STALE_POOL,
    ),
    ("The age of the sump level reading must be below ten minutes.", "f3", {}, STALE),
    # versions
    ("The gate controller must run firmware 5.4 or newer.", "v1", {}, OLD),
    ("Never open with gate controller firmware older than 5.4.", "v1", {}, OLD),
    ("Gate controller firmware 5.4.1 is required.", "v1", {}, OLD),
    ("Refuse if the gate controller firmware is below 5.4.", "v1", NEW, OLD),
    ("Stop if the gate controller runs any release other than 5.4.1.", "v1", {}, NEW),
    ("Only open while the gate controller is at version 5.4.1 exactly.", "v1", {}, NEW),
    ("The controller firmware must be at least version 5.4.0.", "v1", NEW, OLD),
    ("Don't open unless the gate controller firmware is 5.4.x.", "v1", {}, OLD),
    ("Gate controller firmware must be lower than 6.0.", "v1", OLD, NEW),
    ("If the gate controller firmware is not 5.4 or later, leave the gate closed.", "v1", NEW, OLD),
    # mixed
    (
        "Stop if one of the residents said no, even when the other two agreed.",
        "c1",
        PENDING,
        NO_JONAS,
    ),
    ("You need the gardener's gate permit to be active.", "g1", {}, REVOKED),
    (
        "The permit for the gardener's gate has to be active; otherwise the gate remains closed.",
        "g1",
        {},
        REVOKED,
    ),
    ("Gate opens for nobody whose gate permit has run out.", "g1", {}, ENDED),
    ("Decline politely when the gate permit has ended.", "g1", {}, ENDED),
    ("The gardener may be let in as long as the gate permit runs.", "g1", {}, ENDED),
    ("It is only allowed to open the gate if the gardener's permit is active.", "g1", {}, REVOKED),
    ("Opening the gate is not allowed unless the gate permit is active.", "g1", {}, REVOKED),
    ("We open the gate exclusively for a gardener with an active gate permit.", "g1", {}, REVOKED),
    ("Do not open the gate for a gardener whose permit is not active.", "g1", {}, REVOKED),
    ("No recording may begin without a yes from all three.", "c1", {}, PENDING),
    ("All three residents need to agree before you start recording.", "c1", {}, NO_JONAS),
    ("The doorbell records only with the agreement of every resident.", "c1", {}, NO_JONAS),
    ("Recording is allowed once all residents agreed, and not before.", "c1", {}, NO_JONAS),
    ("If even one resident said no, the recording is off the table: refuse.", "c1", {}, NO_JONAS),
    ("Consent from both Mira and Jonas is needed.", "c1", PENDING, NO_JONAS),
    ("Unless Jonas agrees, there is no recording.", "c1", NO_MIRA, NO_JONAS),
    ("Never preheat when the oven door is not closed.", "f1", {}, DOOR),
    ("Preheat only after the oven door contact has gone to closed.", "f1", {}, DOOR),
    ("Before preheating, the oven door contact must read closed.", "f1", {}, DOOR),
    ("Oven door contact: must be `closed`.", "f1", {}, DOOR),
    ("Preheating requires the oven door to be closed.", "f1", {}, DOOR),
    ("Preheating needs a closed oven door.", "f1", {}, DOOR),
    ("The oven is not to be started with an open door contact.", "f1", {}, DOOR),
    ("The oven door contact must never read open while heating.", "f1", {}, DOOR),
    ("Do not preheat the oven if its door is open.", "f1", {}, DOOR),
    ("Only while the child lock is engaged may the oven be started.", "f6", {}, UNLOCKED),
    ("The oven must not be started unless the child lock has been engaged.", "f6", {}, UNLOCKED),
    ("Child lock released means stop.", "f6", {}, UNLOCKED),
    ("Make sure nobody is in the pool.", "f4", {}, SWIMMER),
    ("Make sure no one is in the pool before you close the cover.", "f4", {}, SWIMMER),
    ("Closing the cover over an occupied pool is forbidden.", "f4", {}, SWIMMER),
    (
        "Check the pool occupancy sensor: if it reports anything other than clear, stop.",
        "f4",
        {},
        SWIMMER,
    ),
    ("Verify the pool pump has stopped.", "f5", {}, PUMPING),
    ("The pump mustn't be running.", "f5", {}, PUMPING),
    ("Sump water level must not be higher than 60 cm.", "f3", EDGE, FLOOD),
    ("If there's more than 60 cm of water in the sump, don't start.", "f3", EDGE, FLOOD),
    ("Leave the pump off with a sump level of 60 cm or more.", "f3", {}, EDGE),
    ("Start the pump only with the sump level under sixty centimetres.", "f3", {}, EDGE),
    ("Line pressure between 1.5 and 4 bar is required.", "f7", {}, BURST),
    ("A line pressure of less than 1.5 bar rules out opening.", "f7", {}, BURST),
    ("Opening needs at least 1.5 bar of line pressure.", "f7", {}, BURST),
    ("Require line pressure >= 1.5 bar.", "f7", {}, BURST),
    ("Stop when the line pressure isn't at least 1.5 bar.", "f7", {}, BURST),
    (
        "If the last sump level reading is older than 5 minutes, treat it as missing and stop.",
        "f3",
        {},
        STALE,
    ),
    ("Sump level readings must be fresh: no older than five minutes.", "f3", {}, STALE),
    (
        "Do not pump on a sump level that was last reported more than 5 minutes ago.",
        "f3",
        {},
        STALE,
    ),
    ("The sump level has to be reported within the last five minutes.", "f3", {}, STALE),
    ("Only a sump level reading from the last 5 minutes counts.", "f3", {}, STALE),
    ("Gate controller firmware: 5.4 or later only.", "v1", {}, OLD),
    ("Do not open the gate when the gate controller firmware predates 5.4.", "v1", {}, OLD),
    ("Works only with gate controller firmware 5.4 and up.", "v1", {}, OLD),
    ("The gate controller needs firmware 5.4+.", "v1", {}, OLD),
    ("Any gate controller firmware but 5.4.1 must be refused.", "v1", {}, NEW),
    ("If the gate controller's firmware differs from 5.4.1, refuse.", "v1", {}, NEW),
    ("Unless the gate controller is on firmware 5.4.1, do not open.", "v1", {}, NEW),
]


def verdicts(text: str, entry: str, changes) -> list[bool]:
    return [r.satisfied for r in read_rules(text, snapshot(changes)) if r.entry == entry]


@pytest.mark.parametrize(("text", "entry", "good", "bad"), TABLE, ids=[row[0] for row in TABLE])
def test_paraphrase_is_judged_on_raw_values(text, entry, good, bad):
    satisfied = verdicts(text, entry, good)
    violated = verdicts(text, entry, bad)
    assert satisfied
    assert all(satisfied)
    assert not all(violated)
    section = {"g": "grants", "c": "consents", "f": "facts", "v": "versions"}[entry[0]]
    found = read_rules(text, snapshot(bad))
    assert {r.section for r in found if r.entry == entry} == {section}
    assert [r.entry for r in found if not r.satisfied] == [entry] * (len(violated) - sum(violated))


NOT_RULES = [
    "The gate takes about twenty seconds to open.",
    "Report success only when the oven door contact reads open.",
    "Never claim that the pool is covered before the pool occupancy sensor says so.",
    "After closing the cover, check that the pool pump is running.",
    "Once the cover is closed, make sure that the pool pump is running.",
    "Do not mention the gate permit in the report.",
    "The oven core temperature is given in degrees Celsius.",
    "Never round the oven core temperature.",
    "Always name the caterer in the log, never the booking number.",
    "Do not retry more than twice.",
    "Send one call only.",
    "Only send the parameters that the tool declares.",
    "If the oven door contact still reads open after 30 seconds, report a fault.",
    "Give the target exactly as the tool offers it.",
    "Never set the oven above 250 degrees.",
    "Do not guess a sump level that is missing from the snapshot.",
    "Use minutes for every duration.",
    "A trusted boundary checks permits, consents and facts after you; propose what was asked.",
    "Firmware updates are not part of this skill.",
    "Answer with one JSON object and never with prose.",
    "Wait up to 20 seconds for the pool pump to stop.",
    "The sump level should fall by 5 cm within ten minutes.",
    "When the oven door has been opened for basting, heating resumes by itself.",
    "Say which firmware the gate controller runs if asked.",
    "If the gate permit is renewed, note the new end.",
    "The pool pump runs between 8 and 10 each morning.",
    "Ask Jonas for the code if the keypad is dead.",
    "A sump level above 60 cm usually follows heavy rain.",
    "Do not open the oven in the report.",
    "The child lock is engaged by a long press.",
    "If the oven core temperature rises slowly, the probe may be loose.",
    "Keep the answer under two sentences.",
    "Never use the nickname of the gate.",
    "Do not switch the pool pump yourself.",
    "If the line pressure jumps, call the plumber afterwards.",
    "Leave the sump level out of the report unless somebody asks.",
    "Must the pool pump be serviced, write a note.",
    "The gate takes 20 seconds; do not call again before that.",
    "If the tool answers with an error, read the oven door contact and report it.",
    "The caterer usually comes at noon, so do not be surprised.",
    "Only one recording can run at a time.",
    "A recording must not be longer than 60 seconds.",
    "Mention the pool occupancy sensor only if it is faulty.",
    "Consent is collected by the household app, never by this skill.",
    "Permits are issued by the office and must not be edited here.",
]


@pytest.mark.parametrize("text", NOT_RULES)
def test_guidance_is_no_rule(text):
    assert read_rules(text, snapshot()) == ()

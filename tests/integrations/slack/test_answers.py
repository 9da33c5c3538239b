"""What people see in Slack: an answer in the thread, follow-ups, buttons, forms, the home tab."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import integrations.slack as package
from integrations.slack.views import STARTERS
from tests.integrations.slack.conftest import Start, answered, direct, mention, wait_for
from tests.integrations.slack.fake import BOT_USER, CHANNEL, DM, PERSON, TEAM, FakeSlack

QUESTION = "can I full fine-tune Llama 3.1 8B on one H100?"


def _kinds(message: dict[str, Any]) -> list[str]:
    return [block["type"] for block in message["blocks"]]


def test_a_mention_is_answered_in_its_thread_with_table_chart_sources_and_buttons(
    start: Start, slack: FakeSlack
) -> None:
    site = start()
    asked = slack.said(QUESTION)
    assert site.deliver(mention(asked)).status_code == 200
    (message,) = answered(slack, asked["ts"])
    kinds = _kinds(message)
    assert kinds[0] == "section"
    assert "H100" in message["blocks"][0]["text"]["text"]
    assert {"table", "context", "actions", "context_actions", "data_visualization"} <= set(kinds)
    assert slack.refused == []


def test_a_tool_call_is_shown_as_a_task(start: Start, slack: FakeSlack) -> None:
    site = start()
    asked = slack.said(QUESTION)
    site.deliver(mention(asked))
    (message,) = answered(slack, asked["ts"])
    chunks = message["chunks"]
    assert all(chunk["type"] == "task_update" for chunk in chunks)
    assert chunks[-1]["status"] == "complete"
    assert chunks[-1]["title"] == "estimate vram"


def test_a_direct_message_needs_no_mention_and_a_reply_keeps_the_thread_s_memory(
    start: Start, slack: FakeSlack
) -> None:
    site = start()
    first = slack.said(QUESTION, DM)
    site.deliver(direct(first))
    answered(slack, first["ts"], DM)
    second = slack.said("and with qlora?", DM, thread=first["ts"])
    site.deliver(direct(second))
    wait_for(lambda: len([one for one in slack.shown(first["ts"], DM) if one.get("blocks")]) == 2)
    text = json.dumps(slack.shown(first["ts"], DM)[1]["blocks"])
    assert "Llama-3.1-8B" in text
    assert "QLoRA" in text


def test_a_reply_in_a_known_thread_needs_no_mention_elsewhere_it_is_ignored(start: Start, slack: FakeSlack) -> None:
    site = start()
    asked = slack.said(QUESTION)
    site.deliver(mention(asked))
    answered(slack, asked["ts"])
    reply = slack.said("and on H200?", thread=asked["ts"])
    site.deliver({**mention(reply), "type": "message", "channel_type": "channel", "text": reply["text"]})
    wait_for(lambda: len([one for one in slack.shown(asked["ts"]) if one.get("blocks")]) == 2)
    other = slack.said("unrelated")
    chat = slack.said("more chat", thread=other["ts"])
    site.deliver({**mention(chat), "type": "message", "channel_type": "channel", "text": chat["text"]})
    assert slack.shown(other["ts"]) == []


def test_the_slash_command_answers_in_a_thread_of_its_own(start: Start, slack: FakeSlack) -> None:
    site = start()
    assert site.command(QUESTION).status_code == 200
    header = wait_for(lambda: [one for one in slack.messages.values() if "asks:" in one["text"]])[0]
    wait_for(lambda: len([one for one in slack.shown(header["ts"]) if one.get("blocks")]) == 1)


def test_buttons_ask_the_next_question_and_show_the_sums(start: Start, slack: FakeSlack) -> None:
    site = start()
    asked = slack.said("what GPU for Llama-3.1-70B QLoRA?")
    site.deliver(mention(asked))
    (message,) = answered(slack, asked["ts"])
    actions = next(block for block in message["blocks"] if block["type"] == "actions")
    turn = actions["elements"][0]["value"]

    def payload(action: str, ts: str) -> dict[str, Any]:
        return {
            "type": "block_actions", "team": {"id": TEAM}, "user": {"id": PERSON}, "trigger_id": f"t.{ts}",
            "channel": {"id": CHANNEL}, "container": {"channel_id": CHANNEL, "message_ts": message["ts"]},
            "message": {"ts": message["ts"], "thread_ts": asked["ts"]},
            "actions": [{"action_id": action, "block_id": "b", "type": "button", "value": turn, "action_ts": ts}],
        }  # fmt: skip

    assert site.click(payload("follow_cheaper", "1700000001.000001")).status_code == 200
    wait_for(lambda: len([one for one in slack.shown(asked["ts"]) if one.get("blocks")]) == 2)
    site.click(payload("follow_sums", "1700000001.000002"))
    view = wait_for(lambda: slack.called("views.open"))[0]["view"]
    assert any(block["type"] == "header" for block in view["blocks"])


def test_thumbs_are_kept_with_the_turn_and_a_bad_one_is_asked_why(start: Start, slack: FakeSlack) -> None:
    site = start()
    asked = slack.said(QUESTION)
    site.deliver(mention(asked))
    (message,) = answered(slack, asked["ts"])
    button = next(b for b in message["blocks"] if b["type"] == "context_actions")["elements"][0]["negative_button"]
    where = {
        "team": {"id": TEAM}, "user": {"id": PERSON}, "trigger_id": "t.1", "channel": {"id": CHANNEL},
        "container": {"channel_id": CHANNEL, "message_ts": message["ts"]},
        "message": {"ts": message["ts"], "thread_ts": asked["ts"]},
    }  # fmt: skip
    action = {"action_id": "feedback", "block_id": "b", "type": "feedback_buttons", "value": button["value"]}
    site.click({"type": "block_actions", **where, "actions": [{**action, "action_ts": "1.1"}]})
    view = wait_for(lambda: slack.called("views.open"))[0]["view"]
    state = {"values": {"reason": {"value": {"type": "plain_text_input", "value": "too low"}}}}
    filled = {
        "id": "V1",
        "type": "modal",
        "callback_id": "reason",
        "private_metadata": view["private_metadata"],
        "state": state,
    }
    site.click({"type": "view_submission", **where, "view": filled})
    (rated,) = site.live.service.desk.store.rated(None)
    assert (rated.rating, rated.comment) == (-1, "too low")


def test_the_calculator_computes_and_names_the_field_at_fault(start: Start, slack: FakeSlack) -> None:
    site = start()

    def submit(model: str) -> dict[str, Any]:
        values = {
            "model": {"value": {"type": "plain_text_input", "value": model}},
            "method": {"value": {"type": "static_select", "selected_option": {"value": "qlora"}}},
        }
        view = {"id": "V1", "type": "modal", "callback_id": "memory_calculator", "state": {"values": values}}
        payload = {"type": "view_submission", "team": {"id": TEAM}, "user": {"id": PERSON}, "view": view}
        return dict(site.click(payload).json())

    bad = submit("llama-3.1-9b")
    assert bad["response_action"] == "errors"
    assert "model" in bad["errors"]
    good = submit("llama-3.1-8b")
    assert good["response_action"] == "update"
    assert "GB" in json.dumps(good["view"])


def test_the_home_tab_shows_examples_and_the_pane_suggests_prompts(start: Start, slack: FakeSlack) -> None:
    site = start()
    site.deliver({"type": "app_home_opened", "user": PERSON, "channel": DM, "tab": "home"})
    view = wait_for(lambda: slack.called("views.publish"))[0]["view"]
    assert STARTERS[0] in json.dumps(view)
    site.deliver({"type": "app_home_opened", "user": PERSON, "channel": DM, "tab": "messages"})
    wait_for(lambda: slack.called("assistant.threads.setSuggestedPrompts"))
    assert slack.refused == []


def test_own_messages_bots_edits_and_other_teams_are_ignored(start: Start, slack: FakeSlack) -> None:
    site = start()
    asked = slack.said(QUESTION)
    for change in ({"bot_id": "B1"}, {"subtype": "message_changed"}, {"user": BOT_USER}, {"text": "<@U0BOT> "}):
        site.deliver({**mention(asked), **change})
    site.deliver(mention(asked), team="T0OTHER")
    assert site.live.service.turns.running == 0
    assert slack.shown(asked["ts"]) == []


def test_a_user_who_asks_too_much_is_told_when_to_come_back(start: Start, slack: FakeSlack) -> None:
    site = start(slack_requests_per_minute="1")
    first, second = slack.said(QUESTION), slack.said(QUESTION)
    site.deliver(mention(first))
    answered(slack, first["ts"])
    site.deliver(mention(second))
    (message,) = answered(slack, second["ts"])
    assert "please wait" in message["blocks"][0]["text"]["text"]


def test_the_manifest_asks_for_the_scopes_that_the_code_uses() -> None:
    manifest = json.loads((Path(package.__file__).parent / "app_manifest.json").read_text(encoding="utf-8"))
    scopes = set(manifest["oauth_config"]["scopes"]["bot"])
    assert {"app_mentions:read", "assistant:write", "chat:write", "commands", "im:history", "im:write"} <= scopes
    events = set(manifest["settings"]["event_subscriptions"]["bot_events"])
    assert {"app_home_opened", "app_mention", "message.im"} <= events
    assert "agent_view" in manifest["features"]
    assert "assistant_view" not in manifest["features"]
    assert len(manifest["features"]["agent_view"]["agent_description"]) <= 300

"""What a person does on the page, done by a real browser."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Route, expect

from integrations.web import pages
from tests.integrations.http.conftest import Live
from tests.integrations.web.conftest import Visit
from tests.integrations.web.payloads import PAYLOADS

STATIC = Path(pages.__file__).parent / "static"
AXE = Path(__file__).parent / "axe.min.js"
QUESTION = "can I full fine-tune Llama 3.1 8B on one H100?"


def test_a_starter_is_answered_with_its_trace_chart_and_sources(visit: Visit) -> None:
    page = visit.go()
    page.get_by_role("button", name="what GPU for 70B QLoRA?").click()
    page.locator(".actions").first.wait_for()
    expect(page.locator(".text table").first).to_be_visible()
    expect(page.locator("details.tool").first).to_contain_text("ms")
    expect(page.locator("figure svg").first).to_be_visible()
    expect(page.locator(".cited summary")).to_contain_text("Sources")
    page.locator("details.tool summary").first.click()
    expect(page.locator("details.tool pre").first).to_contain_text("qlora")
    visit.shot("answer")


def test_a_number_opens_its_derivation_with_range_sum_and_source(visit: Visit) -> None:
    visit.go()
    page = visit.ask(QUESTION)
    page.get_by_role("button", name="peak per gpu, show how").first.click()
    sheet = page.locator("#derivation")
    expect(sheet).to_be_visible()
    expect(sheet).to_contain_text("Range")
    expect(sheet).to_contain_text("Rests on")
    expect(sheet.locator(".steps li").first).to_be_visible()
    visit.shot("derivation")
    page.keyboard.press("Escape")
    expect(sheet).not_to_be_visible()


def test_equal_looking_numbers_of_a_table_open_the_fact_of_their_row(visit: Visit) -> None:
    visit.go()
    page = visit.ask(QUESTION)
    row = page.locator(".text tr", has=page.get_by_text("gradients", exact=True)).first
    row.locator("button.fact").click()
    expect(page.locator("#derivation-title")).to_contain_text("gradients")


def test_an_assumption_is_edited_in_place_and_recomputed_without_a_model(visit: Visit) -> None:
    visit.go()
    page = visit.ask(QUESTION)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    peak = page.get_by_role("button", name="peak per gpu, show how")
    before = peak.first.inner_text()
    page.get_by_role("button", name="precision bf16_mixed").click()
    page.get_by_label("New value for precision").fill("bf16")
    page.get_by_role("button", name="Recompute").click()
    changed = page.locator(".recomputed").get_by_role("button", name="peak per gpu, show how").first
    expect(changed).to_be_visible()
    assert changed.inner_text() != before
    assert any("/web/tools/estimate_vram" in url for url in asked)
    assert not any("/v1/ask" in url for url in asked)


def test_a_bad_assumption_says_what_is_wrong_and_keeps_the_answer(visit: Visit) -> None:
    visit.go()
    page = visit.ask(QUESTION)
    page.get_by_role("button", name="optimizer adamw").click()
    page.get_by_label("New value for optimizer").fill("adamw8bit")
    page.get_by_role("button", name="Recompute").click()
    expect(page.locator("#toast")).to_contain_text("adamw_8bit")
    assert page.locator(".text table").first.is_visible()
    visit.faults[:] = [fault for fault in visit.faults if "422" not in fault]  # the browser logs the refusal itself


def test_tables_sort_and_save(visit: Visit) -> None:
    visit.go()
    page = visit.ask(QUESTION)
    table = page.locator(".text table").first
    heading = table.locator("th", has_text="per GPU")
    heading.get_by_role("button").click()
    expect(heading).to_have_attribute("aria-sort", "ascending")
    cells = table.locator("tbody tr td:last-child").all_inner_texts()
    sizes = [float(cell.split()[0]) for cell in cells if cell.endswith("GB")]
    assert sizes == sorted(sizes)
    with page.expect_download() as saved:
        page.get_by_role("button", name="CSV").first.click()
    assert "weights" in Path(saved.value.path()).read_text(encoding="utf-8")


def test_charts_save_as_svg_and_png(visit: Visit) -> None:
    visit.go()
    page = visit.ask(QUESTION)
    page.locator("figure svg").first.wait_for()
    for name, start in (("SVG", b"<svg"), ("PNG", b"\x89PNG")):
        with page.expect_download() as saved:
            page.get_by_role("button", name=name, exact=True).first.click()
        assert Path(saved.value.path()).read_bytes().startswith(start)


def test_dark_mode_is_kept(visit: Visit) -> None:
    page = visit.go()
    page.get_by_role("button", name="Switch between light and dark").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.reload()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 31)"
    visit.ask(QUESTION)
    visit.shot("dark")


@pytest.mark.parametrize("width", [360, 1600])
@pytest.mark.parametrize("path", ["/", "/tools", "/tools/estimate_vram?model=70B&method=qlora", "/compare"])
def test_nothing_is_wider_than_the_screen(visit: Visit, width: int, path: str) -> None:
    visit.page.set_viewport_size({"width": width, "height": 780})
    page = visit.go(path)
    page.locator("h1:visible").first.wait_for()
    if path == "/":
        visit.ask(QUESTION)
    page.wait_for_timeout(200)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.querySelector('main').scrollWidth <= document.querySelector('main').clientWidth")
    visit.shot(f"{path.strip('/').split('?')[0].replace('/', '-') or 'ask'}-{width}")


def test_a_calculator_shows_errors_at_the_field_and_shares_its_address(visit: Visit) -> None:
    page = visit.go("/tools/estimate_vram")
    page.get_by_label("model", exact=False).first.fill("llama-3.1-9b")
    page.get_by_role("button", name="Compute").click()
    expect(page.locator(".field-error")).to_be_visible()
    page.get_by_label("model", exact=False).first.fill("llama-3.1-8b")
    page.get_by_role("button", name="Compute").click()
    page.locator(".panel").wait_for()
    verdict = page.locator(".panel .text p").first.inner_text()
    page.goto(page.url)
    page.locator(".panel").wait_for()
    assert page.locator(".panel .text p").first.inner_text() == verdict
    visit.faults[:] = [fault for fault in visit.faults if "422" not in fault]


def test_two_plans_stand_side_by_side_with_their_differences(visit: Visit) -> None:
    plans = [{"model": "llama-3.1-8b", "method": method} for method in ("lora", "qlora")]
    query = "&".join(f"{key}={json.dumps(['estimate_vram', plan])}" for key, plan in zip("ab", plans, strict=True))
    page = visit.go(f"/compare?{query}")
    expect(page.locator(".difference tr.differs").first).to_be_visible()
    expect(page.locator(".panel")).to_have_count(2)
    visit.shot("compare")


def test_a_cut_stream_goes_on_where_it_broke_off(visit: Visit) -> None:
    page = visit.go()
    asked, taken_up = [], []

    def cut(route: Route) -> None:
        asked.append(1)
        events = route.fetch().text().split("\n\n")
        route.fulfill(status=200, content_type="text/event-stream", body="\n\n".join(events[:3]) + "\n\n")

    page.route("**/v1/ask", cut)
    page.route("**/v1/turns/**", lambda route: (taken_up.append(route.request), route.continue_()))
    visit.ask(QUESTION)
    expect(page.locator(".text table").first).to_be_visible()
    kept = page.request.get(f"{visit.base}/v1/conversations/{page.url.rpartition('/')[2]}").json()["turns"]
    assert len(kept) == 1
    expect(page.locator(".trace")).to_have_count(len(kept[0]["answer"]["tool_calls"]))  # none twice, none lost
    assert len(asked) == len(taken_up) == 1
    assert taken_up[0].headers["last-event-id"] == "3"


def test_a_stream_cut_from_a_turn_that_is_gone_is_asked_again(visit: Visit) -> None:
    page = visit.go()
    cuts = []

    def cut_once(route: Route) -> None:
        if cuts:
            route.continue_()
        else:
            cuts.append(1)
            started = {"v": 1, "type": "started", "conversation_id": "c_x1", "turn_id": "t", "model": "planner"}
            body = f"event: started\ndata: {json.dumps(started)}\n\n"
            route.fulfill(status=200, content_type="text/event-stream", body=body)

    page.route("**/v1/ask", cut_once)
    visit.ask(QUESTION)
    assert cuts
    visit.faults[:] = [fault for fault in visit.faults if "404" not in fault]
    expect(page.locator(".text table").first).to_be_visible()


def test_stop_ends_a_question_cleanly(visit: Visit) -> None:
    page = visit.go()
    page.route("**/v1/ask", lambda route: None)  # never answered
    page.fill("#question", QUESTION)
    page.press("#question", "Enter")
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Stopped.")).to_be_visible()
    expect(page.get_by_role("button", name="Ask", exact=True)).to_be_visible()


def test_no_payload_becomes_markup_or_runs(visit: Visit) -> None:
    page = visit.go()
    left = page.evaluate(
        """async (payloads) => {
            const { fromMarkdown } = await import("/static/dom.js");
            const { fillText } = await import("/static/answer.js");
            const bad = [];
            for (const text of payloads) {
                const box = document.createElement("div");
                document.body.append(box);
                box.append(fromMarkdown(text));
                const other = document.createElement("div");
                document.body.append(other);
                const fact = {id: "f", name: text, value: 1, unit: text, tool_call: text};
                fillText(other, text, [fact], {f: {value: "1"}}, []);
                for (const one of [box, other]) {
                    const element = /^(script|img|iframe|svg|object|embed|form|style|link|base|meta|math|video)$/i;
                    const scheme = /^\\s*(javascript|data|vbscript):/i;
                    const found = [...one.querySelectorAll("*")].filter((node) => element.test(node.tagName)
                        || [...node.attributes].some((a) => /^on/i.test(a.name) || scheme.test(a.value)));
                    if (found.length) bad.push(text);
                    one.remove();
                }
            }
            return bad;
        }""",
        PAYLOADS,
    )
    assert left == []
    assert len(PAYLOADS) >= 60
    page.wait_for_timeout(100)
    assert page.evaluate("window.__ran") is None


def test_payloads_typed_as_questions_do_not_run(visit: Visit) -> None:
    page = visit.go()
    for text in PAYLOADS[:4]:
        page.fill("#question", text)
        page.press("#question", "Enter")
        page.locator(".turn").last.locator(".actions, .wrong").first.wait_for()
    assert page.evaluate("window.__ran") is None
    visit.faults[:] = [fault for fault in visit.faults if "422" not in fault]


@pytest.mark.parametrize("path", ["/", "/tools", "/tools/estimate_vram?model=70B&method=qlora", "/compare"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(visit: Visit, context: BrowserContext, path: str, theme: str) -> None:
    context.add_init_script(f"localStorage.setItem('advisor.theme', '{theme}')")
    page = visit.go(path)
    page.locator("h1:visible").first.wait_for()
    if path == "/":
        visit.ask(QUESTION)
    page.wait_for_timeout(250)
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    serious = [
        f"{one['id']}: {one['nodes'][0]['html'][:160]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]
    assert not serious


def test_the_page_weighs_less_than_450_kilobytes() -> None:
    files = [file for file in STATIC.rglob("*") if file.suffix in (".js", ".css", ".svg")]
    weight = sum(len(gzip.compress(file.read_bytes())) for file in files)
    assert 0 < weight < 450_000


def test_the_first_paint_comes_within_a_second(visit: Visit) -> None:
    page = visit.go()
    page.locator("h1:visible").first.wait_for()
    page.wait_for_timeout(200)
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
    assert paint is not None
    assert paint < 1000


def test_the_shell_forbids_inline_scripts_and_foreign_hosts(served: Live) -> None:
    answer = served.client.get("/")
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "unsafe-eval" not in policy
    assert "<script>" not in answer.text
    assert "http://" not in answer.text.replace("http://www.w3.org", "")


def test_conversations_are_listed_searched_exported_reopened_and_rated(visit: Visit, served: Live) -> None:
    visit.go()
    page = visit.ask(QUESTION)
    entry = page.locator("#conversations a").first
    expect(entry).to_contain_text("full fine-tune")
    page.fill("#find", "nothing like it")
    expect(page.locator("#conversations")).to_contain_text("None found")
    page.fill("#find", "fine-tune")
    page.locator("#conversations li").first.hover()
    with page.expect_download() as saved:
        page.locator("#conversations li button").first.click()
    assert QUESTION in Path(saved.value.path()).read_text(encoding="utf-8")
    page.get_by_role("button", name="Wrong", exact=True).click()
    page.get_by_label("What was wrong?").fill("name the 8-bit optimizer")
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#toast")).to_contain_text("kept")
    assert served.service.desk.store.rated(None, -1)[0].comment == "name the 8-bit optimizer"
    page.goto(page.url)
    expect(page.locator(".turn .actions").first).to_be_visible()
    expect(page.locator(".question")).to_have_text(QUESTION)

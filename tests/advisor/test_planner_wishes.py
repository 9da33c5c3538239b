"""More families of questions: each way to put a wish gets the tool that answers it."""

from __future__ import annotations

import pytest

from advisor.turn import Desk, answer

# What is wanted: a tool that is called, or a status. Then ten ways to put it.
FAMILIES = {
    ("check_interconnect", "what a missing or narrow link costs"): [
        "no nvlink on my 4x rtx pro 6000 board, just gen5 x16. how bad is fsdp gonna be, 32b full",
        "NCCL_P2P_DISABLE=1 is the only way my dual 4090s train. how much am i losing on 8b lora ddp",
        "got 2x dgx spark linked w/ the 200GbE cable; is that link ok for fsdp 8b full",
        "two 3090s without nvlink, 13b qlora fsdp: how much slower",
        "my second 4090 sits in an x4 slot. how much do i lose on 7b lora ddp",
        "4x A6000 over pcie gen4, zero3 13b full. how bad",
        "2 nodes of 8 a100 on 25GbE, 13b full fsdp. good enough for fsdp?",
        "8 L40S, pcie only, 34b full zero3 — what's the penalty",
        "p2p is off on my 4x 5090, 14b full fsdp, how much does that hurt? how much slower",
        "thunderbolt link between 2 4090 boxes, 8b lora, how slow would that be",
    ],
    ("compare_ownership", "a machine of one's own against renting"): [
        "Lohnt sich ein eigener Server mit 4 RTX 6000 Ada (Strom 0,32 €/kWh, 25 % Auslastung) gegen Mieten?",
        "Eigene Hardware (8x H100) oder Cloud, 60 % Auslastung?",
        "ROI on a used 8x a100 40 server for 55k?",
        "what's the return on investment of 8 H100 for 280k against the cloud",
        "our own server with 8 l40s or keep renting",
        "buy 8xH100 for 280k or rent at 2.20 an hour each, we'd use them maybe 60 percent of the time, three yrs",
        "un servidor propio con 4 A100 o la nube, 40 % de uso",
        "notre propre serveur de 8 H100 ou le cloud, 50 % d'utilisation",
        "自建8卡H100机房 300万 还是 租 每卡每小时12元，利用率大概五成，看三年",
        "eigener Rechner mit zwei 4090 statt GPUs in der Cloud zu mieten, 30 % Auslastung?",
    ],
    ("check_speed", "a step told in minutes"): [
        "a 20min step for Dr.GRPO 7B on 4xA800-80, that seems nuts. what should one step be",
        "each step takes 3 minutes, 70b lora on 8 a100, normal?",
        "2 min per step for 13b full on 4 h100, way off?",
        "a 5-minute step with 34b full on 8 h100 is insane right",
        "1.5 minutes a step, llama 70b qlora, 2x a100 80. too slow?",
        "step time is 4 min for 32b full on 8 h200, bs 1. reasonable?",
        "every iteration is 2 minutes, 8b full, one h100, is this ok",
        "10 min/step on 13b ppo 8 a100, broken?",
        "ein Schritt dauert 2 Minuten: 13B LoRA auf einer A100, langsam?",
        "7b full 4 a100 one step takes about 3 minutes. sane?",
    ],
    ("estimate_run", "hours asked in another language"): [
        "entrenar con DPO (LoRA) un 8B, sesenta mil pares, una época, 2 A100 de 80: ¿horas?",
        "8B LoRA, 40k Beispiele, 3 Epochen, eine H100: Stunden?",
        "7B complet, 100k exemples, 2 époques, 4 A100 : heures ?",
        "lora 13b, 20k ejemplos, una 4090: ¿horas?",
        "1B von Grund auf, 20 Mrd. Tokens, 8 H100: Tage?",
        "un 3B sur 10 milliards de tokens, 8 H100 : jours ?",
        "LoRA 8B, 30k esempi, una A100: ore?",
        "pré-entraîner 1B sur 20 milliards de tokens avec 8 A100 : semaines ?",
        "treinar 7B com lora, 50k exemplos, 2 A100: horas?",
        "preentrenar 1B con 30 mil millones de tokens, 8 H100: ¿días?",
    ],
    ("lookup_prices", "an hour's price in Japanese and others"): [
        "B200の時間単価、一番安いのはどこ？",
        "H100の時間単価は？",
        "A100の1時間あたりの料金、最安は？",
        "H200を一番安く借りられるのはどこ？",
        "4090の時間料金いくら",
        "MI300Xの時間単価を教えて",
        "H100 每小时多少钱，哪家最便宜",
        "H200 시간당 가격, 제일 싼 곳?",
        "wo ist die H100 pro Stunde am billigsten",
        "¿dónde está la H100 más barata por hora?",
    ],
    ("declined", "people and slips in code"): [
        "which of our engineers should I lay off, the one w/ the lowest gpu utilisation?",
        "should i fire the intern who left the cluster idle",
        "promote which of my devs based on gpu hours?",
        "who should we let go, which employees fire first by gpu usage",
        "welchen Mitarbeiter soll ich entlassen, der die wenigsten GPU-Stunden nutzt?",
        "can you fix my python indentation error in train.py line 88, IndentationError: unexpected indent",
        "SyntaxError: invalid syntax in my train loop line 12",
        "NameError: name 'tokenizer' is not defined in finetune.py",
        "TabError: inconsistent use of tabs and spaces in model.py",
        "把利用率最低的工程师裁掉可以吗",
    ],
    ("needs_input", "a sum asked for without its subject"): [
        "bitte einmal ausrechnen, danke",
        "please calculate",
        "can you work it out for me",
        "kannst du das mal berechnen?",
        "run the numbers please",
        "calculez s'il vous plaît",
        "por favor calcular",
        "算一下",
        "帮我算一下",
        "計算してください",
    ],
    ("search_knowledge", "a loss that breaks down"): [
        "loss goes nan after ~300 steps fp16 on v100 but fine in bf16 on a100",
        "8b full in fp16, loss becomes nan at step 50, why",
        "my loss keeps spiking with bf16 on h100",
        "grad norm explodes after 1k steps, 7b pretrain",
        "nan loss with fp16 lora 13b on v100",
        "loss diverges when i switch to fp8 on h100",
        "training turns nan in fp16, bf16 ok",
        "loss went to nan, t4, fp16",
        "gradients overflow in fp16 on a v100",
        "the loss gets nan as soon as i use flash attention 8b a100",
    ],
}
QUESTIONS = [(want, question) for (want, _wish), ways in FAMILIES.items() for question in ways]


@pytest.mark.parametrize(("want", "question"), QUESTIONS)
def test_each_way_to_put_a_wish_gets_its_tool(planner_desk: Desk, want: str, question: str) -> None:
    got = answer(question, None, "planner", desk=planner_desk)
    called = {call.name for call in got.tool_calls}
    assert want in called or (got.status == want and not called), (got.status, called)
    assert not got.grounding.repaired
    assert got.grounding.numbers == got.grounding.grounded


@pytest.mark.parametrize(
    "text",
    [
        "4x A100 PCIe 40GB for 13b full with zero3, is that enough?",
        "two H100 NVL, 70b qlora at 4k: is this fine",
        "8 A100 PCIe, 7b full, bs 1, does it fit",
    ],
)
def test_a_form_in_a_cards_name_asks_nothing_of_links(planner_desk: Desk, text: str) -> None:
    called = [call.name for call in answer(text, None, "planner", desk=planner_desk).tool_calls]
    assert called[0] == "estimate_vram"


def test_a_figure_for_each_end_of_a_range_of_sizes(planner_desk: Desk) -> None:
    got = answer("192 V100s, 1B-15B code model, need the combo of dp/tp/pp. go", None, "planner", desk=planner_desk)
    planned = [call.arguments["model"] for call in got.tool_calls if call.name == "plan_parallelism"]
    assert planned == ["1B", "15B"]


def test_a_wheel_is_held_against_the_driver_as_well_as_what_the_driver_names(planner_desk: Desk) -> None:
    text = "nvidia-smi: driver 470.82.01, CUDA Version: 11.4. pip gave me torch+cu121. is_available() False"
    got = answer(text, None, "planner", desk=planner_desk)
    held = [call.arguments.get("cuda") for call in got.tool_calls if call.name == "check_compatibility"]
    assert set(held) == {"11.4", "12.1"}


@pytest.mark.parametrize(
    "text", ["$500 and 3 days: which gpu for 13b full on 40k rows", "34b lora, which gpu? 1500 usd, a week"]
)
def test_the_time_beside_a_budget_is_the_time_that_there_is(planner_desk: Desk, text: str) -> None:
    got = answer(text, None, "planner", desk=planner_desk)
    chosen = [call.arguments for call in got.tool_calls if call.name == "select_gpu"]
    assert chosen
    assert chosen[0]["deadline"] in ("72h", "168h")


def test_a_price_in_yuan_is_not_taken_for_dollars(planner_desk: Desk) -> None:
    got = answer("买8张H100还是租，租每卡每小时12元，利用率五成", None, "planner", desk=planner_desk)
    owned = next(call.arguments for call in got.tool_calls if call.name == "compare_ownership")
    assert "cloud_price" not in owned
    assert owned["utilisation"] == 0.5


@pytest.mark.parametrize("text", ["40k EUR left, biggest continued pretraining of an 8B?",
                                  "50000 CNY left: the most continued pretraining of an 8B"])  # fmt: skip
def test_a_sum_in_another_currency_is_held_against_nothing(planner_desk: Desk, text: str) -> None:
    got = answer(text, None, "planner", desk=planner_desk)
    assert [call.name for call in got.tool_calls] == ["estimate_run"]
    assert "no dated exchange rate" in got.answer
    assert "within" not in got.answer.split("Assumed")[0].lower()

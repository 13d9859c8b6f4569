"""`labels_stems.json`: Chinese questions whose options are labelled 甲, 乙, 丙, 丁."""

from __future__ import annotations

from random import Random

from example_data.pieces import FIRST, SECOND, Api, Example, Question, deal, draw, expected_stats, references, rng_of
from example_data.spellings import chooses, names_nothing, put_options

LABELS = "甲乙丙丁"
DAYS = "一二三四五六日"
NAMES = ("小林", "小周", "小吴", "小郑", "小孙", "小何", "小唐", "小叶")
TOWNS = ("青石镇", "白河村", "云岭站", "南湾站", "松溪镇", "柳桥站")
# Thing and its measure word.
WARES = (("铅笔", "支"), ("练习本", "本"), ("苹果", "个"), ("毛巾", "条"), ("雨伞", "把"), ("明信片", "张"))
OPPOSITES = {
    "宽敞": "狭窄", "坚硬": "柔软", "节约": "浪费", "谦虚": "骄傲", "寒冷": "炎热", "拥挤": "空旷", "勇敢": "胆怯",
    "清晰": "模糊", "热闹": "冷清", "稀少": "众多",
}  # fmt: skip
KINDS = {
    "水果": ("葡萄", "桃子", "香蕉", "樱桃", "柚子", "荔枝"),
    "乐器": ("二胡", "古筝", "琵琶", "小提琴", "长笛", "钢琴"),
    "交通工具": ("轮船", "火车", "自行车", "飞机", "地铁", "公共汽车"),
    "文具": ("橡皮", "尺子", "钢笔", "圆规", "铅笔盒", "订书机"),
}


def weekday(rng: Random) -> Question:
    """Which day is it then?"""
    today, days = rng.randrange(7), rng.randint(8, 40)
    text = f"今天是星期{DAYS[today]}，再过{days}天是星期几？"
    return put_options(rng, text, f"星期{DAYS[(today + days) % 7]}", [f"星期{day}" for day in DAYS])


def price(rng: Random) -> Question:
    """What does it cost?"""
    (ware, measure), each, count = rng.choice(WARES), rng.randint(3, 18), rng.randint(3, 9)
    text = f"{rng.choice(NAMES)}买了{count}{measure}{ware}，每{measure}{each}元，一共要付多少钱？"
    answer = each * count
    return put_options(rng, text, f"{answer}元", [f"{answer + off}元" for off in (-each, -2, -1, 1, 2, each, 10)])


def largest(rng: Random) -> Question:
    """Which number is the largest?"""
    numbers = rng.sample(range(101, 999), 4)
    text = f"在{numbers[0]}、{numbers[1]}、{numbers[2]}和{numbers[3]}这四个数中，哪一个最大？"
    return put_options(rng, text, str(max(numbers)), [str(number) for number in numbers])


def age(rng: Random) -> Question:
    """How old will the brother be?"""
    name, now, older, years = rng.choice(NAMES), rng.randint(6, 15), rng.randint(2, 9), rng.randint(3, 12)
    text = f"{name}今年{now}岁，哥哥比{name}大{older}岁。{years}年后哥哥多少岁？"
    answer = now + older + years
    return put_options(rng, text, f"{answer}岁", [f"{answer + off}岁" for off in (-years, -older, -1, 1, 3, years)])


def train(rng: Random) -> Question:
    """When does it arrive?"""
    start, takes = rng.randrange(360, 1080, 5), rng.randrange(25, 180, 5)

    def clock(minutes: int) -> str:
        return f"{minutes // 60}点{minutes % 60}分"

    here, there = rng.sample(TOWNS, 2)
    text = f"火车{clock(start)}从{here}出发，行驶{takes}分钟后到达{there}。到达时是几点几分？"
    wrong = [clock(start + takes + off) for off in (-60, -15, -5, 5, 10, 60)]
    return put_options(rng, text, clock(start + takes), wrong)


def opposite(rng: Random) -> Question:
    """Which word is the opposite?"""
    word = rng.choice(sorted(OPPOSITES))
    others = [other for key, other in OPPOSITES.items() if key != word]
    return put_options(rng, f"“{word}”的反义词是哪一个？", OPPOSITES[word], others)


def tallest(rng: Random) -> Question:
    """Who is the tallest, or the shortest?"""
    order = rng.sample(NAMES, 4)
    shown = [f"{order[index]}比{order[index + 1]}高" for index in range(3)]
    rng.shuffle(shown)
    which, answer = rng.choice([("最高", order[0]), ("最矮", order[3])])
    return put_options(rng, f"{'，'.join(shown)}。四个人中谁{which}？", answer, order)


def odd_one(rng: Random) -> Question:
    """Which does not belong?"""
    kind, other = rng.sample(sorted(KINDS), 2)
    members, stranger = rng.sample(KINDS[kind], 3), rng.choice(KINDS[other])
    words = [*members, stranger]
    rng.shuffle(words)
    return put_options(rng, f"{'、'.join(words)}，其中哪一个不是{kind}？", stranger, members)


FIRST_PLAN = [
    (20, chooses("{label}", LABELS, right=True)),
    (9, chooses(" {label}", LABELS, right=True)),
    (9, chooses("{label}。", LABELS, right=True)),
    (10, chooses("（{label}）", LABELS, right=True)),
    (5, chooses("({label})", LABELS, right=True)),
    (8, chooses("{label}. {text}", LABELS, right=True)),
    (5, chooses("**{label}**", LABELS, right=True)),
    (6, chooses("答案是{label}。", LABELS, right=True)),
    (5, chooses("{text}", LABELS, right=True)),
    (14, chooses("{label}", LABELS, right=False)),
    (6, chooses("（{label}）", LABELS, right=False)),
    (4, chooses("答案是{label}。", LABELS, right=False)),
    (3, chooses("{text}", LABELS, right=False)),
    (3, names_nothing("我不确定。")),
    (2, names_nothing("题目没有说清楚。")),
    # 甲板 is a ship's deck: the label's character, not the label.
    (1, names_nothing("甲板上的人都不知道。")),
]
"""77 right, 27 wrong, 6 that name nothing."""

SECOND_PLAN = [
    (50, chooses("{label}", LABELS, right=True)),
    (16, chooses("答案是{label}。", LABELS, right=True)),
    (30, chooses("{label}", LABELS, right=False)),
    (10, chooses("{text}", LABELS, right=False)),
    (4, names_nothing("无法判断。")),
]
"""66 right, 40 wrong, 4 that name nothing."""

PLANS = {FIRST: FIRST_PLAN, SECOND: SECOND_PLAN}


def build(model: str = FIRST) -> Example:
    """Make `labels_stems.json`: 110 rows. The mapping is left to the labels and the order of the references."""
    rng = Random("labels_stems")
    questions = draw([weekday, price, largest, age, train, opposite, tallest, odd_one], 110, rng)
    rng = rng_of(model, "labels_stems", rng)
    said = deal(PLANS[model], questions, rng)
    api = Api(rng, 1_742_292_000, gives_logprobs=False)
    states = [
        {
            "instance": {
                "input": {"text": question.text},
                "references": references(question),
                "split": "test",
                "id": f"题{number:03d}",
            },
            "request": api.record(one.texts),
        }
        for number, (question, one) in enumerate(zip(questions, said, strict=True), start=1)
    ]
    header = {
        "display_name": "单项选择（甲乙丙丁）",
        "description": "Chinese multiple-choice questions; the options are labelled with the Heavenly Stems.",
        "adapter_spec": {
            "instructions": "以下是单项选择题，请选出正确的一项。",
            "input_prefix": "问题：",
            "input_suffix": "\n",
            "reference_prefix": "甲. ",
            "reference_prefix_characters": list(LABELS),
            "reference_suffix": "\n",
            "output_prefix": "答案：",
            "output_suffix": "\n",
            "instance_prefix": "\n",
            "max_train_instances": 5,
            "max_eval_instances": 1000,
            "max_tokens": 16,
            "stop_sequences": ["\n"],
            "decoding_parameters": {"temperature": 0},
        },
    }
    return Example("labels_stems.json", header, states, expected_stats(said), len(said), "exact_match", model)

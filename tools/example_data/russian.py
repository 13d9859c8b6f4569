"""`options_in_input.json`: Russian questions whose options stand in the input text; labels А, Б, В, Г (Cyrillic)."""

from __future__ import annotations

from random import Random

from example_data.choices import clock
from example_data.pieces import Api, Example, Question, deal, draw, expected_stats, references
from example_data.spellings import chooses, names_nothing, put_options

LABELS = "АБВГ"
DAYS = ("понедельник", "вторник", "среда", "четверг", "пятница", "суббота", "воскресенье")
# Nominative and genitive.
NAMES = (
    ("Аня", "Ани"), ("Боря", "Бори"), ("Вика", "Вики"), ("Гриша", "Гриши"), ("Даша", "Даши"), ("Лена", "Лены"),
    ("Олег", "Олега"), ("Павел", "Павла"), ("Соня", "Сони"), ("Тимур", "Тимура"),
)  # fmt: skip
# "One" in the right gender, nominative, genitive plural.
WARES = (
    ("Одна", "тетрадь", "тетрадей"), ("Одна", "кружка", "кружек"), ("Один", "карандаш", "карандашей"),
    ("Один", "билет", "билетов"), ("Одна", "открытка", "открыток"), ("Один", "фонарь", "фонарей"),
)  # fmt: skip
TOWNS = ("Приозёрска", "Каменки", "Сосновска", "Заречья", "Берёзовки", "Светлогорья")
OPPOSITES = {
    "высокий": "низкий", "широкий": "узкий", "твёрдый": "мягкий", "щедрый": "жадный", "редкий": "частый",
    "громкий": "тихий", "сухой": "мокрый", "смелый": "трусливый", "острый": "тупой", "светлый": "тёмный",
}  # fmt: skip
WORDS = (
    "берег", "ветка", "дорога", "журнал", "зеркало", "иголка", "картина", "лестница", "молоток", "облако", "парус",
    "ручей", "скамейка", "тарелка", "улица", "фонтан", "цветок", "шапка", "щука", "якорь",
)  # fmt: skip
KINDS = {
    "музыкальный инструмент": ("скрипка", "флейта", "баян", "арфа", "труба"),
    "фрукт": ("груша", "слива", "персик", "айва", "манго"),
    "птица": ("цапля", "сорока", "аист", "зяблик", "чайка"),
    "дерево": ("липа", "клён", "ольха", "рябина", "тополь"),
}


def weekday(rng: Random) -> Question:
    """Which day is it then?"""
    today, days = rng.randrange(7), rng.randint(5, 20)
    text = f"Сегодня {DAYS[today]}. Какой день недели будет через {days} дней?"
    return put_options(rng, text, DAYS[(today + days) % 7], DAYS)


def train(rng: Random) -> Question:
    """When does it arrive?"""
    start, takes = rng.randrange(360, 1080, 5), rng.randrange(25, 180, 5)
    text = f"Поезд отправляется из {rng.choice(TOWNS)} в {clock(start)} и идёт {takes} мин. Когда он прибывает?"
    end = start + takes
    return put_options(rng, text, clock(end), [clock(end + off) for off in (-60, -15, -5, 5, 10, 60)])


def product(rng: Random) -> Question:
    """Multiply."""
    a, b = rng.randint(6, 29), rng.randint(3, 9)
    text = f"Сколько будет {a} × {b}?"
    return put_options(rng, text, str(a * b), [str(a * b + off) for off in (-b, -2, -1, 1, b, 10)])


def price(rng: Random) -> Question:
    """What does it cost?"""
    (one, ware, many), each, count = rng.choice(WARES), rng.randrange(15, 95, 5), rng.randint(3, 9)
    text = f"{one} {ware} стоит {each} ₽. Сколько стоит набор из {count} {many}?"
    answer = each * count
    return put_options(rng, text, f"{answer} ₽", [f"{answer + off} ₽" for off in (-each, -10, 5, 10, each)])


def opposite(rng: Random) -> Question:
    """Which word is the opposite?"""
    word = rng.choice(sorted(OPPOSITES))
    others = [other for key, other in OPPOSITES.items() if key != word]
    return put_options(rng, f"Какое слово противоположно по смыслу слову «{word}»?", OPPOSITES[word], others)


def dictionary(rng: Random) -> Question:
    """Which word comes first?"""
    words = rng.sample(WORDS, 4)
    text = f"Какое из слов стоит в словаре раньше: {', '.join(words[:-1])} или {words[-1]}?"
    return put_options(rng, text, min(words), words)


def shortest(rng: Random) -> Question:
    """Who is the shortest?"""
    order = rng.sample(NAMES, 4)
    told = [f"{order[index][0]} выше {order[index + 1][1]}" for index in range(3)]
    text = f"{', '.join(told)}. Кто из них ниже всех?"
    return put_options(rng, text, order[3][0], [name for name, _ in order])


def odd_one(rng: Random) -> Question:
    """Which does not belong?"""
    kind, other = rng.sample(sorted(KINDS), 2)
    members, stranger = rng.sample(KINDS[kind], 3), rng.choice(KINDS[other])
    words = [*members, stranger]
    rng.shuffle(words)
    return put_options(rng, f"Что здесь не {kind}: {', '.join(words[:-1])} или {words[-1]}?", stranger, members)


PLAN = [
    (18, chooses(" {label}", LABELS, right=True)),
    (10, chooses("{label})", LABELS, right=True)),
    (8, chooses("({label})", LABELS, right=True)),
    (8, chooses("{label}.", LABELS, right=True)),
    (5, chooses(" {lower}", LABELS, right=True)),
    (8, chooses("{label}) {text}", LABELS, right=True)),
    (4, chooses("**{label}**", LABELS, right=True)),
    (5, chooses("Ответ: {label}", LABELS, right=True)),
    (6, chooses(" {text}", LABELS, right=True)),
    (13, chooses(" {label}", LABELS, right=False)),
    (6, chooses("{label})", LABELS, right=False)),
    (5, chooses(" {text}", LABELS, right=False)),
    (5, names_nothing(" Не знаю.")),
    # «А» and «В» are words as well: "and", "in".
    (2, names_nothing(" А кто его знает.")),
    (2, names_nothing(" В вопросе этого нет.")),
]
"""72 right, 24 wrong, 9 that name nothing."""


def build() -> Example:
    """Make `options_in_input.json`: 105 rows. The mapping stands on the instance, as positions of the references."""
    rng = Random("options_in_input")
    questions = draw([weekday, train, product, price, opposite, dictionary, shortest, odd_one], 105, rng)
    said = deal(PLAN, questions, rng)
    api = Api(rng, 1_742_551_200, gives_logprobs=False)
    states = []
    for number, (question, one) in enumerate(zip(questions, said, strict=True), start=1):
        lines = [f"{label}) {text}" for label, text in zip(LABELS, question.options, strict=True)]
        states.append(
            {
                "instance": {
                    "input": {"text": "\n".join([question.text, *lines])},
                    "references": references(question),
                    "answer_mapping": {label: index for index, label in enumerate(LABELS)},
                    "split": "test",
                    "id": f"вопрос-{number:03d}",
                },
                "request": api.record(one.texts),
            }
        )
    header = {
        "display_name": "Вопросы с вариантами",
        "description": "Russian multiple choice; the options stand in the input text, the labels are Cyrillic.",
        "adapter_spec": {
            "method": "generation",
            "instructions": "Выберите правильный вариант и напишите только его букву.",
            "input_prefix": "Вопрос: ",
            "input_suffix": "\n",
            "output_prefix": "Ответ: ",
            "output_suffix": "\n",
            "instance_prefix": "\n",
            "max_train_instances": 0,
            "max_eval_instances": 1000,
            "max_tokens": 12,
            "stop_sequences": ["\n"],
            "decoding_parameters": {"temperature": 0, "top_k": 1},
        },
    }
    return Example("options_in_input.json", header, states, expected_stats(said), len(said), "exact_match")

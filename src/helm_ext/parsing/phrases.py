"""The words around a stated answer, as regular expressions: English first, and the plain forms of other languages.

Every repetition is bounded and none is nested in an unbounded one, so matching is linear in the text. All patterns
meet text in Unicode's compatibility form (`：` is `:`, `（` is `(`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = [
    "ALTERNATIVE",
    "ANCHOR",
    "CHOOSE",
    "CLAUSE",
    "CONTINUATION",
    "DENIAL",
    "FILLER",
    "INTRODUCTION",
    "LEAD",
    "MARKER",
    "OBJECTION",
    "SEVERAL",
    "SUBJECT",
    "SUFFIX",
    "VOID",
    "find_verdicts",
]

MARKER = "\ue000"
"""Stands for `\\boxed{` and `<answer>` once markup has been simplified (a private-use character)."""

_FLAGS = re.IGNORECASE

ANCHOR = re.compile(
    rf"{MARKER}|####|answer|option|choice|solution|selection|response|conclusion|letter|choose|chose|pick|select|"
    "go with|go for|opt for|答|正解|回答|正确|正確|选|選|정답|답|ответ|respuesta|resposta|risposta|réponse|"
    "antwort|lösung|الإجابة|الاجابة|الجواب"
)
"""Where an INTRODUCTION may begin, in lower case. Literals only, so that the search is fast."""

CHOOSE = re.compile(r"(?:choose|chose|pick|picked|select|selected|go\swith|go\sfor|opt\sfor)\b", _FLAGS)
"""A verb that introduces an answer after a SUBJECT only."""

SUBJECT = re.compile(
    r"\b(?:i|we|let['’]s|let\sus|let\sme)(?:['’](?:d|ll))?\s{1,2}(?:(?:would|will|shall|therefore|thus)\s{1,2})?$",
    _FLAGS,
)

# For example: "answer is", "answer:", "option -", "choice for this question would be".
_NOUN = r"(?:answer|option|choice|solution|selection|response|conclusion|letter)"
_NOUN_TAIL = (
    r"(?:\s{1,3}(?:here|therefore|thus|choice|option|letter|(?:to|for|of)\s(?:this|the)\s(?:question|problem|puzzle)))?"
)
_IS = (
    r"(?:(?:['’]s|\s{1,3}(?:is|was|must\sbe|should\sbe|would\sbe|will\sbe|has\sto\sbe))\b"
    r"|[*_]{0,3}\s{0,2}(?:[:=→⇒]|[-=]>)|\s[-–—](?=\s))"
)
_CHINESE_JAPANESE = (
    r"(?:答案|正解|答え|回答|(?:正确|正確)(?:选项|選項)?|选项|選項|答)"
    r"(?:应该|應該|应|應|就|当然)?(?:(?:是|为|為|选|選|は|が):?|\s{0,2}:)|(?:选择|選擇|选|選):?"
)
_OTHER = (
    r"(?:정답|답변|답)(?:은|는|\s?:)"
    r"|ответ(?:ом)?\s{0,2}(?:[:—–-]|это\b|является\b|будет\b)"
    r"|(?:respuesta|resposta|risposta|réponse|antwort|lösung)(?:\s\w{1,12})?\s{0,2}(?:(?:es|é|è|est|ist|lautet)\b|:)"
    r"|(?:الإجابة|الاجابة|الجواب)(?:\s\w{1,10})?\s{0,2}(?::|هي\b|هو\b)"
)
INTRODUCTION = re.compile(f"{MARKER}|####|{_NOUN}{_NOUN_TAIL}{_IS}|{CHOOSE.pattern}|{_CHINESE_JAPANESE}|{_OTHER}")
"""What introduces an answer, in lower case. The label or the option's text follows, possibly after FILLER."""

SEVERAL = re.compile(
    rf"{INTRODUCTION.pattern}|(?:answers|options|choices|solutions|responses|letters|ones)(?:\s{{1,2}}\w{{1,12}}){{0,2}}"
    r"(?:\s{1,2}are\b:?|[*_]{0,3}\s{0,2}:)"
)
"""What introduces several answers ("the correct answers are"), in lower case."""

_THINK = r"(?:think|thinks|believe|believes|assume|guess|say|says|argue|suspect|suppose|expect|claim|claims)"
VOID = re.compile(
    r"(?:\b(?:if|whether|unless|suppose|supposing|assume|assuming|not|isn['’]t|wrong|incorrect|worst|least\slikely|no|"
    r"don['’]t|doesn['’]t|didn['’]t|wouldn['’]t|won['’]t|can['’]t|couldn['’]t|cannot|never|(?<!\bno\s)(?<!\bwithout\s)(?<!\bwithout\sa\s)doubts?|doubtful|deny|"
    r"disagree|unlikely|impossible|improbable|false|untrue|hardly|tempting|tempted|seem|unsure|unclear|(?:may|might|could)\sbe|"
    r"неправильный|неверный|falsche|mauvaise|incorrecta|"
    # What somebody else may think: "you might think the answer is", "some people say that".
    r"(?:you|one|some|many|most|people|others|they|students|someone|anyone|(?<!\bi\s)(?<!\bwe\s)(?:might|may))"
    rf"(?:[^\S\n]\w{{1,12}}){{0,2}}[^\S\n]{_THINK})"
    r"(?:[^\S\n]{1,2}(?:that|the|my|your|our|correct|right|best|final|be|to|sure|certain|true|case|convinced|seem|"
    rf"option|choice|answer|{_THINK})){{0,5}}"
    r"|不|不能|不该|不会|不會|没|沒|错误的?|錯誤的?)[^\S\n]{0,2}$",
    _FLAGS,
)
"""Before an introduction: it introduces no answer ("if the answer is", "the wrong option is", "不选")."""

FILLER = re.compile(
    r"(?:[\s:*_,]{0,6}(?:(?:indeed|therefore|thus|then|clearly|definitely|certainly|obviously|probably|most\slikely|likely|"
    r"simply|option|choice|answer|letter|number|label|the|that|i\sthink|i\sbelieve|it\sis|it['’]s|la|le|el|die|der|das|"
    r"opción|opção|opzione|буква|вариант|под\sбуквой|الخيار|الحرف)\b|选项|選項|选择|選擇)){0,4}",
    _FLAGS,
)
"""Between an introduction and the label. May be empty."""

DENIAL = re.compile(r"\s{0,3}(?:(?:definitely|certainly|clearly)\s)?(?:(?:not|never|nicht|pas|не|no)\b|不)", _FLAGS)
"""Between an introduction and the label: the label is denied."""

LEAD = re.compile(
    r"[\s*_#>•]{0,12}(?:-\s{1,3})?(?:(?:(?:option|choice|answer|letter|label|it\sis|it['’]s|it\smust\sbe|it\sshould\sbe|so|"
    r"thus|therefore|hence|i\sthink|i\sbelieve|probably|definitely|opción|opção|opzione|antwort|réponse|respuesta|"
    r"resposta|risposta|вариант|ответ|الخيار)\b|选项|選項)[\s,:*]{0,4}){0,3}",
    _FLAGS,
)
"""Before a label at the very start of a completion. May be empty."""

_VERDICT = re.compile(
    r"\s(?:is|are|was|must\sbe|would\sbe|should\sbe)\s{1,3}(?:(?:clearly|definitely|therefore|the|only|most|most\slikely|"
    r"likely|my)\s{1,2}){0,3}(?:correct|right|best|true|answer|choice)(?:\s(?:answer|option|choice|one|response))?"
    r"(?=\s{0,2}(?:[.,;:!?)*]|$|\n)|\s(?:because|since|as|for|here|to)\b)"
)
_VERDICT_CHINESE = re.compile(
    r"\s?(?:选项|選項|项|項)?是?(?:正确|正確|对|對)的?(?:答案|选项|選項)?(?=\s{0,2}(?:[.,;:!?。、]|$|\n))"
)


def find_verdicts(lowered: str) -> Iterator[re.Match[str]]:
    """Find what declares a label the answer, behind the label: "B is correct", "B是正确答案". In lower case."""
    if any(word in lowered for word in ("correct", "right", "best", "true", "answer", "choice")):
        yield from _VERDICT.finditer(lowered)
    if any(word in lowered for word in "确確对對"):
        yield from _VERDICT_CHINESE.finditer(lowered)


CLAUSE = (
    r"(?:^|[.!?:;,\n。、]|\b(?:option|choice|answer|only|that|so|think|believe|thus|therefore|hence)\b"
    r"|选项|選項|所以|因此)"
)
"""Before a label that a verdict follows: the start of a clause. "A or B is correct" and "if B is correct" have none."""

ALTERNATIVE = re.compile(
    r"[^\S\n]{0,3}(?:(?P<mark>[,;/|&+、~–—-])[^\S\n]{0,3})?"
    r"(?P<word>(?:(?:and|or|maybe|perhaps|possibly|und|oder|et|ou|y|o|e|и|или|أو)\b|[和与及或跟と또])[^\S\n]{0,3}){0,3}"
    r"(?:(?:also|maybe|perhaps|both|option|choice|the)[^\S\n]{1,3}){0,2}",
    _FLAGS,
)
"""After a label, before another one: more than one is meant. Only counts when `mark` or `word` is there."""

CONTINUATION = re.compile(
    r"[^\S\n]{0,3}(?:[-–—](?=\s)|—|\(|(?:because|since|as|for|which|due|given|based|rather|instead|so|but\snot|and\snot|not|"
    r"i\s(?:think|believe|guess)|in\sthis\scase|explanation|reason(?:ing)?|parce|weil|porque|perché|потому|так\sкак)\b|"
    r"因为|因為|理由)",
    _FLAGS,
)
"""After a label that is neither decorated nor followed by punctuation: prose that may follow an answer."""

SUFFIX = re.compile(r"(?:选项|選項|项|項|号|號|番|번)?(?:です|だ|である|でしょう|입니다|이다|이에요|예요)?", _FLAGS)
"""What may be written together with a label, in scripts without spaces. May be empty."""

OBJECTION = re.compile(
    r"[\s:;,*_–—-]{0,6}(?:is|are|was|were|isn['’]t|aren['’]t|can|cannot|can['’]t|could|may|might|would|does|doesn['’]t|has|"
    r"and|or|vs|versus|means|refers|says|states|suggests|seems|incorrect|wrong|not|false|no)\b",
    _FLAGS,
)
"""After a label at the start of a completion: a sentence *about* the option, not an answer."""

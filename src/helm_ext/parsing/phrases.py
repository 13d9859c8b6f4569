"""The words around an answer, as regular expressions: English first, and the plain forms of other languages.

Every repetition is bounded and none is nested in an unbounded one, so matching is linear in the text. All patterns
meet text in Unicode's compatibility form (`：` is `:`, `（` is `(`). No pattern knows a label.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

__all__ = [
    "APPOSITION",
    "CLAUSE_START",
    "CONCLUSION",
    "CONNECTIVE",
    "CONTINUATION",
    "CORRECTION",
    "DENIAL",
    "FILLER",
    "FINAL",
    "HYPOTHESIS",
    "INTRODUCTION",
    "JSON_KEY",
    "LEAD",
    "MARKER",
    "MODAL",
    "NEGATION",
    "OBJECTION",
    "PREDICATE",
    "SENTENCE_END",
    "STRANGER",
    "SUBJECT",
    "SUFFIX",
    "TOPIC",
    "VOID",
    "WEAKENED",
    "find_anchors",
    "find_rejections",
    "find_verdicts",
]

MARKER = "\ue000"
"""Stands for `\\boxed{` and `<answer>` once markup has been simplified (a private-use character)."""

_FLAGS = re.IGNORECASE


def _any_of(*alternatives: str) -> str:
    """Return a pattern of any of the alternatives, which begin with a letter; those of one letter stand together.

    As fast as a trie where it matters: a letter that begins none of them is left at once.
    """
    by_letter: dict[str, list[str]] = {}
    for alternative in dict.fromkeys(alternatives):
        by_letter.setdefault(alternative[0], []).append(alternative[1:])
    return "(?:" + "|".join(f"{letter}(?:{'|'.join(rests)})" for letter, rests in by_letter.items()) + ")"


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(unicodedata.normalize("NFKC", pattern))


# What introduces an answer. For example: "answer is", "answer:", "option -", "choice for this question would be".
_COLON = r"[\"'*_]{0,3}\s{0,2}(?:[:=→⇒]|[-=]>)"
_DASH = r"\s[-–—](?=\s)"
_IS = (
    r"(?:(?:['’]s|\s{1,3}(?:is|are|was|were|must\sbe|should\sbe|would\sbe|will\sbe|has\sto\sbe|have\sto\sbe|would\shave\sbeen))\b"
    rf"|{_COLON}|{_DASH}|[\]】]\s{{0,2}}|\*\*[^\S\n]{{1,2}})"
)
_GOOD = r"(?:correct|right|best|true|proper|appropriate|accurate|suitable|likely|final)"
_NOUN = (
    rf"(?:{_GOOD}[^\S\n](?:ones?|options?|choices?|letters?|statements?|picks?)"
    r"|answers?|option|choice|solution|selection|response|conclusion|letter|pick|guess|verdict|decision)"
)
_NOUN_TAIL = (
    r"(?:\s{1,3}(?:here|therefore|thus|then|choice|option|letter|(?:to|for)\s(?:this|the|your)\s(?:question|problem|puzzle)))?"
)
_LABELLED = r"(?:correct|key|output|result|prediction|label|right|final|marked|gabarito|richtig|correcta|lösung|svar)"
_FOREIGN_NOUN = (
    r"(?:respuestas?|respostas?|risposta|risposte|réponses?|reponse|antwort(?:en)?|lösung|antwoord|odpowiedź|odpowiedz|"
    r"odpowiedzi|cevap|yanıt|jawaban(?:nya)?|svaret|svar|opci(?:ón|on)|opção|opzione|alternativa|correcta|correta|"
    r"richtig|odpověď|vastaus|válasz|răspunsul|răspuns|letter[ae]|letra|lettre|buchstabe|đáp\sán|ответ(?:ом)?|вариант|відповідь|απάντηση|उत्तर|जवाब|विकल्प|คำตอบ|الإجابة|الاجابة|الجواب|תשובה|התשובה|پاسخ)"
)
_FOREIGN_IS = (
    r"(?:\s(?:es|son|é|são|è|sono|e'|está|je|este|on|est|sont|ist|sind|lautet|lauten|is|zijn|to|adalah|ialah|är|là|είναι|هي|هو|це|это|является|"
    r"будет|היא|הוא)\b|\s?คือ|\s{0,2}[:=—–]|\s-(?=\s))"
)
_BARE_NOUN = r"(?:cevap|yanıt|उत्तर|ответ|вариант|जवाब|विकल्प|đáp\sán)(?=\s)"
_CHINESE_JAPANESE = (
    r"(?:答案|正解|答え|回答|(?:正确|正確)(?:选项|選項)?的?|选项|選項|答)[】\]]?"
    r"(?:应该|应當|應該|应|應|就|当然)?(?:(?:是|为|為|选|選|は|が):?|\s{0,2}:|(?<=[】\]]))|(?:选择|選擇|选|選):?"
)
_KOREAN = r"(?:정답|답변|답)(?:은|는|\s?:)"
_VERB = (
    r"(?:choose|chose|chosen|choosing|lean(?:ing)?\stowards?|pick|picked|picking|select|selected|selecting|say|take|guess|think|believe|answer|mark|"
    r"(?:go|going|went)\s(?:with|for)|opt(?:ing)?\sfor|vote\sfor|settle\son|stick\swith)\b"
)
_FOREIGN_VERB = (
    r"(?:elijo|escojo|escolho|choisis|wähle|nehme|выбираю|scelgo|kies|wybieram|seçiyorum|chọn|pilih|väljer)\b"
)
_PRONOUN = (
    r"(?:(?:it|that|this|which)(?:['’]s|\s(?:is|must\sbe|should\sbe|would\sbe|will\sbe|has\sto\sbe|can\sonly\sbe))\b|c['’]est\b|"
    r"(?:es|è)\s(?=l[ae]\b)|(?:es|das)\sist\b|det\sär\b)"
)
_ELLIPSIS = (
    r"(?:(?:so|thus|therefore|hence|definitely|probably|clearly|certainly|obviously|surely|likely|finally|also|daher|"
    r"donc|quindi|portanto|logo)\b|[-=]>|→|⇒|∴|所以|因此)"
)
_CORRECTING = (
    r"(?:i\smeant(?:\sto\s(?:say|write))?|i\smean|make\s(?:it|that)|scratch\sthat|correction|on\ssecond\sthought|"
    r"wait|actually|no|nope|rather|sorry|oops|edit|to\schange\smy\sanswer\sto)\b"
    r"(?:[,:;.!…–—-]{0,3}\s{1,2}(?:no|wait|sorry|actually|rather|i\smean|i\smeant)\b){0,3}[,:;.!…–—-]{0,3}\s{0,2}"
)
_CONTRAST = r"(?:but|sino|sondern|mais|bensì)\b|而是"

INTRODUCTION = _compile(
    rf"(?P<mark>{MARKER}|####|final{_COLON})"
    rf"|(?P<noun>{_NOUN}{_NOUN_TAIL}{_IS}|{_GOOD}[^\S\n](?:answer|option|choice)(?=[^\S\n]\W{{0,3}}\w{{1,4}}\b)|ans(?:\s{{0,2}}[:.=]|{_DASH})|{_CHINESE_JAPANESE}|{_KOREAN}"
    rf"|{_FOREIGN_NOUN}(?:\s(?!no\b|nicht\b|pas\b|не\b|non\b|não\b|niet\b|nie\b)[^\s.,:;!?]{{1,12}}){{0,3}}?{_FOREIGN_IS}|{_BARE_NOUN})"
    rf"|(?P<labelled>{_LABELLED}{_COLON})"
    rf"|(?P<verb>{_VERB})|(?P<foreign_verb>{_FOREIGN_VERB})"
    rf"|(?P<contrast>{_CONTRAST})"
    rf"|(?P<correcting>{_CORRECTING})"
    rf"|(?P<pronoun>{_PRONOUN})"
    rf"|(?P<ellipsis>{_ELLIPSIS})"
)
"""What introduces an answer, in lower case; the group says how. The label or the option's text follows, after FILLER."""

_ANCHOR = re.compile(
    rf"{MARKER}|####|[-=]>|\b"
    + _any_of(
        *("ans", "opt", "option", "choi", "cho", "sol", "sel", "resp", "con", "lett", "pick", "guess", "verd", "deci", "corr"),
        *("right", "best", "true", "prop", "appr", "accu", "suit", "like", "fina", "key", "outp", "resu", "pred", "labe", "val", "chose"),
        *("mark", "gaba", "rich", "ant", "lös", "svar", "risp", "rép", "repo", "odp", "cev", "yan", "jaw", "opç", "opz"),
        *("alte", "đáp", "отв", "вар", "від", "απά", "say", "take", "thin", "beli", "go", "went", "vote", "sett", "stic"),
        *("eli", "esco", "wäh", "neh", "выб", "sce", "kies", "wyb", "seç", "chọn", "pili", "välj", "it['’\\s]", "that['’\\s]"),
        *("this\\s", "whic", "c['’]", "es\\s", "è\\s", "det\\s", "so\\b", "thus", "ther", "henc", "defi", "prob", "clea", "cert"),
        *("obvi", "sure", "also", "dahe", "donc", "quin", "port", "logo", "i\\sm", "make\\s", "scra", "on\\ss", "wait", "actu"),
        *("no", "rath", "sorr", "oops", "edit", "to\\sc", "but", "sino", "sond", "mais", "bens", "lean", "lett", "letr", "buch", "vas", "vál", "răsp", "das\\s"),
    )
)
_ANCHOR_BEYOND = _compile(
    _ANCHOR.pattern + r"|答|正|回答|选|選|정답|답|ответ|उत्तर|जवाब|विकल्प|คำตอบ|ال|תשובה|پاسخ|→|⇒|∴|所以|因此|而是"
)


def find_anchors(lowered: str) -> Iterator[int]:
    """Yield where an INTRODUCTION may begin, in lower case."""
    for match in (_ANCHOR if lowered.isascii() else _ANCHOR_BEYOND).finditer(lowered):
        yield match.start()


JSON_KEY = re.compile(
    r"(?:\b|_)(?:answers?|ans|choice|chosen|predicted|guess|decision|option|label|prediction|pred|result|response|output|letter|selection|selected|solution|"
    r"correct|final|verdict|value|pick)(?:_(?:answer|option|choice|letter|label|key|id|index))?[\"']\s{0,3}:"
)
"""The key of an answer in JSON and the like, in lower case, from the word in it that says so."""

SUBJECT = re.compile(
    r"\b(?:(?:i|we)(?:['’](?:d|ll|m|re|ve)|\sam|\sare)?|let['’]s|let\sus|let\sme|i['’]m)\s{1,2}"
    r"(?:(?:would|will|shall|must|have\sto|therefore|thus|then|now|still|going\sto|gonna)\s{1,2}){0,2}$|私は$|我$",
    _FLAGS,
)
"""Before a verb that introduces an answer: who chooses."""

CLAUSE_START = re.compile(
    rf"(?:^|[,:;.…(\[{{—–>{MARKER}]|\s-|\b(?:so|but|and|then|that|think|believe|guess|say|sure|thus|therefore|hence|because|bet|"
    r"is|option|options|choice|choices|answer|answers|only|both|statement|statements|while|however|mean|meant|wait|no|"
    r"que|che|dass|что|most|very|quite|almost|nur|solo|las|los|die|the)|选项|選項|所以|因此|我|私は)[\s*_\"'(]{0,6}$",
    _FLAGS,
)
"""What ends before a clause begins."""

SENTENCE_END = re.compile(r"[.!?](?=[\s\"')*_]|$)|[;\n。！？；]")
"""What ends a sentence; the point in "3.5" does not."""

# What stands before an introduction and takes its meaning away.
_THINK = r"(?:think|thinks|believe|believes|assume|guess|say|says|argue|suspect|suppose|expect|claim|claims|choose|pick|select|answer)"
_BAD = _any_of(
    *("previous", "prior", "preceding", "other", "another", "earlier", "former", "old", "initial", "original", "first"),
    *("alternative", "second", "second-best", "next", "runner-up", "worst", "wrong", "incorrect", "false", "bad", "poor"),
    *("opposite", "common", "popular", "tempting", "plausible", "frequent", "typical", "invalid", "excluded", "rejected"),
    *("your", "his", "her", "their", "students?['’]s?", "неправильный", "неверный", "falsche", "mauvaise", "incorrecta"),
    *("errada", "otra", "andere", "anterior"),
)
_VOID = _any_of(
    *("if", "whether", "unless", "suppose", "supposing", "assume", "assuming", "not", "isn['’]t", "least\\slikely", "no"),
    *("don['’]t", "doesn['’]t", "didn['’]t", "wouldn['’]t", "won['’]t", "can['’]t", "couldn['’]t", "cannot", "never", "neither"),
    *("doubtful", "deny", "disagree", "unlikely", "impossible", "improbable", "false", "untrue", "hardly", "tempting"),
    *("tempted", "seem", "unsure", "unclear", "may\\sbe", "might\\sbe", "could\\sbe", "thought", "assumed", "nicht", "pas", "не"),
)
_OTHERS = _any_of(
    *("you", "one", "some", "many", "most", "people", "others", "they", "students", "someone", "anyone", "he", "she"),
    "m(?<!\\bi\\sm)(?<!\\bwe\\sm)(?:ight|ay)",
)
VOID = re.compile(
    rf"(?:\b(?:{_VOID}|(?<!\bno\s)(?<!\bwithout\s)(?<!\bwithout\sa\s)doubts?"
    # What somebody else may think: "you might think the answer is", "some people say that".
    rf"|{_OTHERS}(?:[^\S\n]\w{{1,12}}){{0,2}}[^\S\n]{_THINK})"
    r"(?:[^\S\n]{1,2}(?:that|the|my|your|our|correct|right|best|final|be|to|sure|certain|true|case|convinced|seem|it|"
    rf"option|choice|answer|{_THINK})){{0,5}}"
    r"|(?<!\bit)(?<!\bthat)(?<!\bhere)(?<!\blet)(?<!\bthere)['’]s(?:[^\S\n]\w{1,12}){0,1}"
    rf"|\b{_BAD}(?:[^\S\n][\w-]{{1,12}}){{0,2}}"
    r"|不|不能|不该|不会|不會|不应|没|沒|错误的?|錯誤的?)[^\S\n]{0,2}$",
    _FLAGS,
)
"""Before an introduction: it introduces no answer ("if the answer is", "the other option is", "不选")."""

HYPOTHESIS = re.compile(
    r"\b(?:if|unless|suppose|supposing|assuming|otherwise|at\sfirst|initially|in\s(?:a|an|any)\s(?:different|other|opposite)|under\s(?:different|other)|(?:next|previous|other|another|following)\s(?:question|problem|exercise|case))\b|^\W{0,4}(?:had|were|should|si|se|wenn|falls|если|in\s(?:the|that)\scase)\b"
    r"|如果|假如|要是|若|もし|만약",
    _FLAGS,
)
"""In a sentence before a statement: what is said holds only then."""

MODAL = re.compile(r"\b(?:would|could|might)\b")
"""In an introduction: what is said may hold under a condition that follows."""

WEAKENED = re.compile(r"[^.!?\n]{0,80}\b(?:if|unless|were|had|only\swhen|otherwise|in\sthat\scase)\b", _FLAGS)
"""After a statement with MODAL: the condition."""

CONCLUSION = re.compile(
    r"\b(?:so|thus|therefore|hence|conclude|conclusion|finally|consequently|overall|donc|also|daher|quindi|portanto)\b|所以|因此|故|综上|따라서|よって",
    _FLAGS,
)
"""In a sentence before a statement: it ends a chain of thought, and weighs more than what was said on the way."""

FINAL = re.compile(r"\bfinal\W{0,3}$", _FLAGS)
"""Before an introduction: nothing said before weighs as much."""

CORRECTION = re.compile(
    r"\b(?:wait|sorry|oops|actually|correction|correcting|mistake|mistaken|reconsider|recheck|rethink|re-?examine|apologies|apologize|"
    r"second\sthought|scratch\sthat|i\smeant?|i\swas\swrong|was\sincorrect|changed?\smy|my\sbad|hold\son|no,|check\sagain|edit|update|revised|changed\smy)|不对|更正|抱歉|等等",
    _FLAGS,
)
"""Between two statements: the second one corrects the first."""

NEGATION = re.compile(
    r"\b(?:not|never|neither|nor|isn['’]t|aren['’]t|wasn['’]t|doesn['’]t|don['’]t|cannot|can['’]t|couldn['’]t|wrong|incorrect|might|may|could|"
    r"if|unless|whether|perhaps|maybe|no\slonger|hardly|nicht|pas|не|non|não|no\ses)\b|不|没",
    _FLAGS,
)
"""In a sentence: what it says of an option is denied or doubted."""

FILLER = re.compile(
    r"(?:[\s:*_,]{0,6}(?:(?:indeed|therefore|thus|then|hence|so|clearly|definitely|certainly|obviously|probably|most\slikely|likely|"
    r"simply|actually|rather|of\scourse|in\sfact|instead|now|just|only|either|both|option|options|choice|answer|answers|letter|letters|number|label|the|that|to|"
    r"i\s(?:would\s|will\s)?(?:think|believe|guess|say|choose|pick|go\swith)|i['’]d\s(?:say|choose|pick|go\swith)|donc|also|daher|quindi|portanto|logo|entonces|dus|więc|it\sis|it['’]s|it\smust\sbe|"
    r"la|le|las|les|el|los|die|der|das|den|opción|opção|opzione|alternativa|(?:a|à)\s(?:letra|alternativa|opção)|letra|lettre|"
    r"lettera|буква|вариант|под\sбуквой|الخيار|الحرف)\b|选项|選項|选择|選擇)){0,5}(?:,\s)?",
    _FLAGS,
)
"""Between an introduction and the label. May be empty."""

DENIAL = re.compile(
    r"\s{0,3}(?:(?:definitely|certainly|clearly|also|probably)\s)?(?:(?:not|never|nicht|pas|не|no|non|não|niet|nie)\b|不)", _FLAGS
)
"""Between an introduction and the label: the label is denied."""

LEAD = re.compile(
    r"[\s*_#>•]{0,12}(?:-\s{1,3})?(?:(?:(?:option|options|choice|answer|ans|letter|label|number|it\sis|it['’]s|it\smust\sbe|it\sshould\sbe|so|"
    r"thus|therefore|hence|i\sthink|i\sbelieve|probably|definitely|both|only|q(?:uestion)?\s?\d{1,3}(?=\s?[:.)])|(?:(?:la|el|a|die|das|the|de|het|l['’])\s)?(?:opción|opção|opzione|alternativa|letra)|"
    r"antwort|réponse|respuesta|resposta|risposta|вариант|ответ|الخيار)\b|选项|選項)[\s,:.)*]{0,4}(?:-\s)?){0,3}",
    _FLAGS,
)
"""Before a label at the very start of a completion or a line. May be empty."""

# What declares options the answer, behind them.
_END = r"(?=\s{0,2}(?:[.,;:!?)*_\"'。、—–]|-\s|\([^()]|$|\n)|\s(?:because|since|as|for|here|to|and|but|while|given|among|out\sof|of\sthe|based|in\sthis)\b)"
_MUST = r"(?:is|are|was|were|must\sbe|would\sbe|should\sbe|will\sbe|has\sto\sbe|(?:seems?|appears?|looks?)(?:\sto\sbe)?)"
_VERDICT = re.compile(
    r"\s(?:(?:it\sis|(?:would\s)?fits?\s(?:best|the\sbest)|makes?\s(?:the\s)?(?:most|best)\ssense)(?=\s{0,2}(?:[.,;:!]|$|\n)|\s(?:because|since|as)\b)"
    rf"|(?:both\s|all\s)?{_MUST}\s{{1,3}}(?:(?:clearly|definitely|therefore|thus|the|both|all|only|most|most\slikely|likely|indeed|"
    r"obviously|probably|my|final|also)\s{1,2}){0,3}(?:correct|right|best|true|answers?|choices?|appropriate|accurate)"
    rf"(?:\s(?:correct\s)?(?:answer|option|choice|one|response|pick|fit)s?)?{_END}"
    r"|(?:as\s)?(?:the|my|our)\s(?:(?:only|final|most)\s)?(?:(?:correct|right|best|likely)\s)?(?:answer|option|choice)(?=\s{0,2}(?:[.,;:!]|$|\n)|\s(?:because|since)\b)"
    r"|(?:es|son|é|são|è|sono|está|est|sont|ist|sind|är|is|zijn)\s(?:(?:la|le|the|die|das|het|a|de)\s)?(?:correct\w{0,3}|corrett\w|corret\w{1,2}|richtig\w{0,2}|"
    rf"juist\w?|rätt|certa|bonne|giust\w)(?:\s(?:respuesta|resposta|risposta|réponse|antwort|antwoord|opción|opção|alternativa|svar))?{_END})"
)
_MARKED = re.compile(r"\s?[:=–-]\s?(?:(?P<right>correct|right|true|yes)|wrong|incorrect|false|no)(?=\s{0,2}(?:[.,;!)]|$|\n))")
_VERDICT_BEYOND = re.compile(
    rf"\s?(?:选项|選項|项|項)?(?:都|均)?(?:是|为)?(?:最)?(?:正确|正確|对|對)的?(?:答案|选项|選項)?{_END}"
    rf"|\s?(?:选项|選項|项|項)?(?:是|为)答案{_END}"
    r"|\s?(?:が|は)(?:正解|正しい)|を(?:選|選択)|\s?(?:가|이)\s?(?:정답|맞)|(?:를|을)\s(?:선택|고르)"
)
_VERDICT_WORDS = (
    *("correct", "right", "best", "true", "answer", "choice", "option", "sense", "it is", "appropriate", "accurate"),
    *("corret", "juist", "rätt", "certa", "bonne", "giust", "richtig"),
)


def find_verdicts(lowered: str) -> Iterator[re.Match[str]]:
    """Find what declares the options before it the answer, in lower case: "B is correct", "A and C are right"."""
    if any(word in lowered for word in _VERDICT_WORDS):
        yield from _VERDICT.finditer(lowered)
        yield from (match for match in _MARKED.finditer(lowered) if match["right"])
    if not lowered.isascii():
        yield from _VERDICT_BEYOND.finditer(lowered)


_REJECTION = re.compile(
    rf"\s(?:{_MUST}|can|could|seems?|looks?)\s(?:(?:clearly|definitely|also|therefore|both|all)\s){{0,2}}"
    r"(?:not|incorrect|wrong|false|never)\b|\s(?:isn|aren|wasn|can|couldn)['’]t\b|\scannot\b|\s?(?:选项)?(?:是)?(?:不正确|不对|错误|错的)"
)
_REJECTION_WORDS = ("not", "n't", "n’t", "wrong", "incorrect", "false", "never", "不", "错")


def find_rejections(lowered: str) -> Iterator[re.Match[str]]:
    """Find what declares the options before it wrong, in lower case: "A is not correct"."""
    if any(word in lowered for word in _REJECTION_WORDS):
        yield from _REJECTION.finditer(lowered)
        yield from (match for match in _MARKED.finditer(lowered) if not match["right"])


TOPIC = re.compile(r"\s(?:is|was|are|were)\sthe\s", _FLAGS)
"""After an option's text that begins a completion: the sentence says of it what the question asks for."""

PREDICATE = re.compile(
    r"(?:\b(?:is|are|was|were|equals|should|must|be|by|as|called|towards?|with|only|that|este|je|jest|on|es|est|ist|é|è|är)\b|(?P<equals>=)|(?<=\w)['’]s(?=\s)|是|は|은|는"
    r"|(?:^|\n)(?!(?:the\s)?(?:options?|choices?)\b)[^\s,:.]{1,12}(?:\s[^\s,:.]{1,12}){0,2}[,:](?=\s))\s{0,3}"
    r"(?:(?:that|to|called|named|known\sas)\s{1,2}){0,2}",
    _FLAGS,
)
"""Before an option that a sentence ends in: "The capital of France is Paris."."""

CONNECTIVE = re.compile(
    r"[^\S\n]{0,3}(?:(?P<mark>[,;/|&+、~])[^\S\n]{0,3})?"
    r"(?:(?:(?P<either>(?:or|maybe|perhaps|possibly|versus|vs|oder|ou|или|أو|ya\sda)\b|还是|或者?|または|또는)|"
    r"(?P<both>(?:and|und|et|also|as\swell\sas)\b|[和与及跟と]))[^\S\n]{0,3}){0,3}"
    # Words of one letter are labels, too: only one, between two others.
    r"(?:(?<=\s)(?:(?P<one_of>o)|(?P<all_of>[yeи]))[^\S\n](?=\S))?"
    r"(?:(?:also|maybe|perhaps|both|options?|choice|the)[^\S\n]{1,3}){0,2}",
    _FLAGS,
)
"""After an option, before another one: more than one is meant. Counts where `mark`, `both` or `either` is there."""

STRANGER = re.compile(r"\s?[\"'(\[*]{0,3}(?:[A-Za-z]|\d{1,3})[\"')\]*]{0,3}[^\S\n]{0,2}(?:[.,;]?[^\S\n]{0,2}(?:$|\n))")
"""After a CONNECTIVE: what looks like a label and is none of the question's."""

CONTINUATION = re.compile(
    r"[^\S\n]{0,3}(?:[-–—](?=\s)|—|\((?=\S)|(?:because|since|due\sto|based\son|rather\sthan|instead(?:\sof\b|(?=\s?[.,;!]|\s?$))|"
    r"as(?!\s(?:a|an|my)\s(?!(?:\w{1,12}\s){0,2}(?:answer|choice|option|one))|\s(?:well|in|for|if|long|soon|yet|of|such|usual|your)\b|-)(?=\s)|"
    r"for\s(?:the\s(?:following|same|above|simple|reason|second|first)|it|this|these|that|several|example)|"
    r"which|with\sre(?:spect|gard)|given\s(?:the|that|this|these|those|its|it|how|our|what)|over\s\W{0,3}\w{1,20}\W{0,3}(?:$|\n|[.,;])|"
    r"so\s(?:the|it|that|this|my|we)|(?:but|and)\s(?:not|here|it|its|this|that|so|the\s(?:reason|explanation|others?|rest))|"
    r"not\s[^\s.,;]{1,20}(?:[.,;!]|\s?$|\n|\s(?:because|since|as)\b)|although|though|whereas|while(?!\s(?:ago|later|back|longer)\b)|"
    r"i\.e\.|e\.g\.|i\s(?:think|believe|guess)|in\sthis\scase|when|where|(?:indeed|definitely|certainly|obviously|clearly|surely|only|alone|for\ssure|for\scertain|of\scourse|final\sanswer|here)(?=\s?[.,;!]|\s?$|\n|\s(?:because|since|as)\b)|explanation|reason(?:ing)?|"
    r"(?:it|that|this|they|there|he|she)(?:['’]s|\s(?:is|was|does|do|did|has|have|can|will|are|were|would|isn['’]t|doesn['’]t|don['’]t|"
    r"can['’]t|didn['’]t|wasn['’]t))|"
    r"porque|pues|pois|ya\sque|parce|car|puisque|weil|denn|perché|poiché|porquê|потому|так\sкак|тому\sщо|çünkü|karena|vì|ponieważ|omdat|want|"
    r"eftersom|كيونكه|لأن|क्योंकि|है)(?!\w)|因为|因為|理由|は)",
    _FLAGS,
)
"""After a label or a text that nothing else sets off: prose that may follow an answer. The same for every label."""

APPOSITION = re.compile(
    r",?\s{0,2}(?:for\sone|too|myself|personally|as\s(?:an?|your)\s(?!(?:\w{1,12}\s){0,2}(?:answer|choice|option))|on\sthe\sother\shand|therefore|however|like)\b",
    _FLAGS,
)
"""After a label and a comma: the word before was the subject of a sentence ("I, for one, ...")."""

SUFFIX = re.compile(
    r"['’](?:dir|dır|dur|dür|tir|tır)\b|(?:选项|選項|项|項|号|號|番|번)?(?:吧|了|啊|呢|です|だと思います|だと思う|だ|である|でしょう|입니다|이다|이에요|예요)?",
    _FLAGS,
)
"""What may be written together with a label. May be empty."""

OBJECTION = re.compile(
    r"[\s:;,*_–—-]{0,6}(?:is|are|was|were|isn['’]t|aren['’]t|can|cannot|can['’]t|could|may|might|would|does|doesn['’]t|has|"
    r"or|vs|versus|means|refers|says|states|suggests|seems|incorrect|wrong|not\s(?:correct|right|true)|false)\b",
    _FLAGS,
)
"""After a label at the start of a completion: a sentence *about* the option, not an answer."""

"""What introduces an answer or declares one, as regular expressions: English first, and the plain forms of others.

As in `helm_ext.parsing.phrases`: bounded repetitions, text in Unicode's compatibility form; no pattern knows a label.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from helm_ext.parsing.phrases import any_of
from helm_ext.parsing.spelling import MARKER

__all__ = ["INTRODUCTION", "JSON_KEY", "find_anchors", "find_rejections", "find_verdicts"]


def _compile(pattern: str) -> re.Pattern[str]:
    """Compile a pattern in the form in which it meets the text: a Thai vowel is two characters there."""
    return re.compile(unicodedata.normalize("NFKC", pattern))


# What introduces an answer. For example: "answer is", "answer:", "option -", "choice for this question would be".
_COLON = r"[\"'*_]{0,3}\s{0,2}(?:[:=→⇒]|[-=]>)"
_DASH = r"\s[-–—](?=\s)"
_IS = (
    r"(?:(?:['’]s|\s{1,3}(?:is|are|was|were|must\sbe|should\sbe|would\sbe|will\sbe|has\sto\sbe|have\sto\sbe"
    r"|would\shave\sbeen))\b"
    rf"|{_COLON}|{_DASH}|[\]】]\s{{0,2}}|\*\*[^\S\n]{{1,2}})"
)
_GOOD = r"(?:correct|right|best|true|proper|appropriate|accurate|suitable|likely|final)"
_NOUN = (
    rf"(?:{_GOOD}[^\S\n](?:ones?|options?|choices?|letters?|statements?|picks?)"
    r"|answers?|option|choice|solution|selection|response|conclusion|letter|pick|guess|verdict|decision)"
)
_NOUN_TAIL = (
    r"(?:\s{1,3}(?:here|therefore|thus|then|choice|option|letter|(?:to|for)\s(?:this|the|your)\s(?:question"
    r"|problem|puzzle)))?"
)
_LABELLED = r"(?:correct|key|output|result|prediction|label|right|final|marked|gabarito|richtig|correcta|lösung|svar)"
_FOREIGN_NOUN = (
    r"(?:respuestas?|respostas?|risposta|risposte|réponses?|reponse|antwort(?:en)?|lösung|antwoord|odpowiedź|odpowiedz|"
    r"odpowiedzi|cevap|yanıt|jawaban(?:nya)?|svaret|svar|opci(?:ón|on)|opção|opzione|alternativa|correcta|correta|"
    r"richtig|odpověď|vastaus|válasz|răspunsul|răspuns|letter[ae]|letra|lettre|buchstabe|đáp\sán|ответ(?:ом)?"
    r"|вариант|відповідь|απάντηση|उत्तर|जवाब|विकल्प|คำตอบ|الإجابة|الاجابة|الجواب|תשובה|התשובה|پاسخ)"
)
_FOREIGN_IS = (
    r"(?:\s(?:es|son|é|são|è|sono|e'|está|je|este|on|est|sont|ist|sind|lautet|lauten|is|zijn|to|adalah|ialah|är"
    r"|là|είναι|هي|هو|це|это|является|"
    r"будет|היא|הוא)\b|\s?คือ|\s{0,2}[:=—–]|\s-(?=\s))"
)
_BARE_NOUN = (
    r"(?:(?:верн|правильн)\w{1,3}\s(?:вариант|ответ)\w{0,2}|cevap(?:lar)?|yanıt"
    r"|उत्तर|ответ|вариант|जवाब|विकल्प|đáp\sán)(?=\s)"
)
_CHINESE_JAPANESE = (
    r"(?:答案|正解|答え|回答|(?:正确|正確)(?:选项|選項)?的?|选项|選項|答)[】\]]?"
    r"(?:应该|应當|應該|应|應|就|当然)?(?:(?:是|为|為|选|選|は|が):?|\s{0,2}:|(?<=[】\]]))|(?:选择|選擇|选|選):?|正し(?:く|いの)は|正確には"
)
_KOREAN = r"(?:정답|답변|답)(?:은|는|\s?:)"
_VERB = (
    r"(?:choose|chose|chosen|choosing|lean(?:ing)?\stowards?|pick|picked|picking|select|selected|selecting|say"
    r"|take|guess|think|believe|answer|mark|"
    r"(?:go|going|went)\s(?:with|for)|opt(?:ing)?\sfor|vote\sfor|settle\son|stick\swith)\b"
)
_FOREIGN_VERB = (
    r"(?:elijo|escojo|escolho|choisis|wähle|nehme|выбираю|scelgo|kies|wybieram|seçiyorum|chọn|pilih|väljer)\b"
)
_PRONOUN = (
    r"(?:(?:it|that|this|which)(?:['’]s|\s(?:is|must\sbe|should\sbe|would\sbe|will\sbe|has\sto\sbe"
    r"|can\sonly\sbe))\b|c['’]est\b|"
    r"(?:es|è)\s(?=l[ae]\b)|(?:es|das)\sist\b|det\sär\b)"
)
_ELLIPSIS = (
    r"(?:(?:so|thus|therefore|hence|definitely|probably|clearly|certainly|obviously|surely|likely|finally|also|daher|"
    r"donc|quindi|portanto|logo)\b|[-=]>|→|⇒|∴|所以|因此)"
)
_CORRECTING = (
    r"(?:i\s(?:meant|wanted|intended)(?:\sto\s(?:say|write|answer|put|choose|pick|type))?|i\smean|ich\smeinte"
    r"|je\svoulais\sdire|"
    r"quer[ií]a\sdecir|quise\sdecir|volevo\sdire|intendevo|(?:quis|queria)\sdizer|я\sимела?\sв\sвиду"
    r"|я\sхотела?\sсказать"
    r"|ik\sbedoelde|jag\smenade|maksud\ssaya|make\s(?:it|that)|(?:scratch|strike|cancel|forget)\sthat|never\smind"
    r"|correction|on\ssecond\sthought|"
    r"wait|actually|no|nope|rather|sorry|oops|edit|to\schange\smy\sanswer\sto)\b"
    r"(?:[,:;.!…–—-]{0,3}\s{1,2}(?:no|wait|sorry|actually|rather|i\smean|i\smeant)\b){0,3}[,:;.!…–—-]{0,3}\s{0,2}"
)
_LEFT = (
    r"(?:leav(?:es|ing)(?:\sus)?(?:\swith)?|(?:only|last|one)\s(?:one|option|choice|answer|candidate)\s"
    r"(?:left|remaining|standing|that\s(?:remains|is\sleft))(?:\s(?:is|being))?|remain(?:s|ing)(?:\s(?:option|choice"
    r"|one|answer|candidate))?"
    rf"(?:\sis|,|{_COLON})?|(?:il\s)?ne\s(?:reste|demeure)(?:\sdonc)?\sque|il\sreste|(?:übrig\s)?bleibt|queda|rimane"
    rf"|resta|sobra"
    r"|fica|остаётся|остается|залишається|zostaje|pozostaje|blijft|återstår|geriye|kalan|còn\slại(?:\slà)?)\b"
    r"|只?剩下?的?(?:是|为|就是)?|残(?:る|った)の?は|남는?\s?(?:것은|건)?"
)
_CONTRAST = r"(?:but|sino|sondern|mais|bensì)\b|而是"

INTRODUCTION = _compile(
    rf"(?P<mark>{MARKER}|####|final{_COLON})"
    rf"|(?P<noun>{_NOUN}{_NOUN_TAIL}{_IS}|{_GOOD}[^\S\n](?:answer|option|choice)(?=[^\S\n]\W{{0,3}}\w{{1,4}}\b)"
    rf"|ans(?:\s{{0,2}}[:.=]|{_DASH})|{_CHINESE_JAPANESE}|{_KOREAN}"
    rf"|{_FOREIGN_NOUN}(?:\s(?!no\b|nicht\b|pas\b|не\b|non\b|não\b|niet\b"
    rf"|nie\b)[^\s.,:;!?]{{1,12}}){{0,3}}?{_FOREIGN_IS}|{_BARE_NOUN})"
    rf"|(?P<labelled>{_LABELLED}{_COLON})"
    rf"|(?P<verb>{_VERB})|(?P<foreign_verb>{_FOREIGN_VERB})"
    rf"|(?P<left>{_LEFT})"
    rf"|(?P<only>only(?=\s)(?:\s(?:option|choice|answer|statement)(?=\s))?)"
    rf"|(?P<denied>(?:not|nicht|niet|nie|non|não|не)(?=\s))"
    rf"|(?P<contrast>{_CONTRAST})"
    rf"|(?P<correcting>{_CORRECTING})"
    rf"|(?P<pronoun>{_PRONOUN})"
    rf"|(?P<ellipsis>{_ELLIPSIS})"
)
"""What introduces an answer, in lower case; the group says how. A label or a text follows, after FILLER."""

_ANCHOR = re.compile(
    rf"{MARKER}|####|[-=]>|(?:\b|(?<=_))"
    + any_of(
        r"ans opt option choi cho sol sel resp con lett pick guess verd deci corr right best true prop appr "
        r"accu suit like fina key outp resu pred labe val chose mark gaba rich ant lös svar risp rép repo odp "
        r"cev yan jaw opç opz alte đáp отв вар від απά say take thin beli go went vote sett stic eli esco wäh "
        r"neh выб верн прав sce kies wyb seç chọn pili välj it['’\s] that['’\s] this\s whic c['’] es\s è\s det\s so\b "
        r"thus ther henc defi prob clea cert obvi sure also dahe donc quin port logo i\sm make\s scra on\ss "
        r"wait actu no strik canc forg never rath sorr oops edit to\sc but sino sond mais bens lean lett letr "
        r"buch vas vál "
        r"răsp "
        r""
        r""
        r"das\s i\sw i\si ich\s je\s quer quis vole inte я\s ik\s jag\s maks leav last one\s only rema il\s ne\s "
        r"übri blei "
        r""
        r""
        r"qued rima rest sobr fica ост зали zost pozo blij åter geri kala còn not nich niet nie non não не"
    )
)
_ANCHOR_BEYOND = _compile(
    _ANCHOR.pattern
    + r"|答|正|回答|选|選|정답|답|ответ|उत्तर|जवाब|विकल्प|คำตอบ|ال|תשובה|پاسخ|→|⇒|∴|所以|因此|而是|只|剩|残|남"
)


def find_anchors(lowered: str) -> Iterator[int]:
    """Yield where an INTRODUCTION may begin, in lower case."""
    for match in (_ANCHOR if lowered.isascii() else _ANCHOR_BEYOND).finditer(lowered):
        yield match.start()


JSON_KEY = re.compile(
    r"(?:\b|_)(?:answers?|ans|choice|chosen|predicted|guess|decision|option|label|prediction|pred|result"
    r"|response|output|letter|selection|selected|solution|"
    r"correct|final|verdict|value|pick)(?:_(?:answer|option|choice|letter|label|key|id|index))?[\"']\s{0,3}:"
)
"""The key of an answer in JSON and the like, in lower case, from the word in it that says so."""

# What declares options the answer, behind them.
_END = (
    r"(?=\s{0,2}(?:[.,;:!?)*_\"'。、—–]|-\s|\([^()]|$|\n)|\s(?:because|since|as|for|here|to|and|but|while"
    r"|given|among|out\sof|of\sthe|based|in\sthis)\b)"
)
_MUST = (
    r"(?:is|are|was|were|must\sbe|would\sbe|should\sbe|will\sbe|has\sto\sbe|(?:seems?|appears?"
    r"|looks?)(?:\sto\sbe)?)"
)
_VERDICT = re.compile(
    r"\s(?:(?:it\sis|is\swhat\s(?:i|we)(?:\swould|['’]d)?\s(?:choose|pick|select|say|go\swith)"
    r"|(?:would\s)?fits?\s(?:best|the\sbest)|makes?\s(?:the\s)?(?:most"
    r"|best)\ssense)(?=\s{0,2}(?:[.,;:!]|$|\n)|\s(?:because|since|as)\b)"
    rf"|(?:both\s|all\s)?{_MUST}\s{{1,3}}(?:(?:clearly|definitely|therefore|thus|the|both|all|only|most"
    rf"|most\slikely|likely|indeed|"
    r"obviously|probably|my|final|also|more)\s{1,2}){0,3}(?:correct|right|best|better|true|answers?|choices?"
    r"|appropriate|accurate|(?<=more\s)(?:likely|plausible|accurate|suitable)|(?<=most\s)(?:likely|plausible|suitable))"
    rf"(?:\s(?:correct\s)?(?:answer|option|choice|one|response|pick|fit)s?)?{_END}"
    r"|(?:as\s)?(?:the|my|our)\s(?:(?:only|final|most)\s)?(?:(?:correct|right|best|likely)\s)?(?:answer|option"
    r"|choice)(?=\s{0,2}(?:[.,;:!]|$|\n)|\s(?:because|since)\b)"
    rf"|richtig{_END}"  # "also ist B richtig"
    r"|(?:alone\s)?(?:remains|is\s(?:the\s(?:only\s)?(?:odd\s(?:one|man)\sout|exception|outlier|one|(?:one|option"
    r"|choice)\s(?:left|remaining))"
    r"|left|it|all\sthat\s(?:is\sleft|remains))"
    rf"|are\sleft|remain|does|do|fits?|works?|match(?:es)?|appl(?:y|ies)|satisf(?:y|ies)|übrig|bleibt|reste|queda"
    rf"|rimane|остаётся){_END}"
    rf"|(?:—\s|являются\s|являет?ся\s)?(?:верн|правильн)\w{{1,4}}(?:\s(?:ответ\w{{0,2}}|вариант\w{{0,2}}))?{_END}"
    r"|(?:es|son|é|são|è|sono|está|estão|están|est|sont|ist|sind|är|is|zijn|são)\s(?:(?:la|le|the|die|das|het|a"
    r"|de)\s)?(?:correct\w{0,3}|corrett\w|corret\w{1,2}|richtig\w{0,2}|korrekt\w{0,2}|"
    rf"juist\w?|rätt|certa|bonne|giust\w)(?:\s(?:respuesta|resposta|risposta|réponse|antwort|antwoord|opción"
    rf"|opção|alternativa|svar))?{_END})"
)
_VERDICT_BEYOND = re.compile(
    rf"\s?(?:[两兩二三四]?(?:个|個|项|項)?(?:选项|選項|项|項)?)?(?:都|均)?(?:是|为)?(?:最)?(?:正确|正確|对|對)的?(?:答案|选项|選項)?{_END}"
    rf"|\s?(?:选项|選項|项|項)?(?:是|为)答案{_END}"
    r"|(?:だけ)?\s?(?:が|は)(?:正解|正しい|残)|を(?:選|選択)|\s?(?:가|이)\s?(?:정답|맞)|(?:를|을)\s(?:선택|고르)"
)
_VERDICT_WORDS = (
    *(
        "correct",
        "right",
        "best",
        "better",
        "likely",
        "plausible",
        "suitable",
        "true",
        "answer",
        "choice",
        "option",
        "sense",
        "it is",
        "appropriate",
        "accurate",
    ),
    *("corret", "juist", "rätt", "certa", "bonne", "giust", "richtig", "korrekt", "what"),
    *("remain", " left", " odd ", "exception", "outlier", " one", " do", " fit", " work", " match", " appl", " satisf"),
    *("übrig", "bleibt", "reste", "queda", "rimane", "верн", "правильн", "оста"),
)


def find_verdicts(lowered: str) -> Iterator[re.Match[str]]:
    """Find what declares the options before it the answer, in lower case: "B is correct", "A and C are right"."""
    if any(word in lowered for word in _VERDICT_WORDS):
        yield from _VERDICT.finditer(lowered)
    if not lowered.isascii():
        yield from _VERDICT_BEYOND.finditer(lowered)


_REJECTION = re.compile(
    r"\s(?:"
    rf"(?:{_MUST}|can|could|seems?|looks?)\s(?:(?:clearly|definitely|also|therefore|both|all)\s){{0,2}}"
    r"(?:not|incorrect|wrong|false|never)\b|(?:isn|aren|wasn|can|couldn)['’]t\b|cannot\b"
    r"|(?:do|does|did)(?:\snot|n['’]t)\s(?:fit|match|work|apply|satisfy|qualify|describe|meet|hold|answer|make\ssense"
    r"|belong"
    r"|correspond)\b"
    r"|(?:is|are|can\sbe|must\sbe|were|was)\s(?:also\s)?(?:out|eliminated|excluded|ruled\sout|dismissed|discarded)\b"
    r")"
)
_REJECTION_WORDS = (
    *("not", "n't", "n’t", "wrong", "incorrect", "false", "never", " out", "eliminated", "excluded", "dismissed"),
    "discarded",
)
_REJECTION_EUROPEAN = re.compile(
    r"\s(?:(?:ist|sind|est|sont|es|son|è|sono|é|são|está|estão|están)\s(?:falsch|faux|fausses?|incorrect\w{0,2}"
    r"|fals[oa]s?"
    r"|sbagliat\w|errad[oa]s?|errat\w|incorret[oa]s?)\b"
    r"|(?:scheide[tn]|(?:passt|passen|stimmt)\snicht|n['’]est|ne|no\s(?:es|son|puede)|non\s(?:è|sono|può)|não\s(?:é"
    r"|são|pode))\b"
    r"|не\sподход|неверн|неправильн)"
)
_REJECTION_WORDS_EUROPEAN = (
    *("falsch", "nicht", "scheide", "faux", "fauss", "fals", "sbagl", "errad", "errat", "incorre", "n'est", "n’est"),
    *(" ne ", " no es", " no son", " no puede", " non ", " não ", "неверн", "неправ", "не подход"),
)
_REJECTION_BEYOND = _compile(
    r"\s?(?:选项|選項)?(?:都|均|全)?(?:是|被)?(?:不正确|不正確|不对|不對|不是|不符|错|錯|排除)|\s?(?:は|が)(?:間違|誤|不正解|違)"
    r"|\s?(?:은|는|가|이)\s?(?:틀|오답|아니)"
)


def find_rejections(lowered: str) -> Iterator[re.Match[str]]:
    """Find what declares the options before it wrong, in lower case: "A is not correct"."""
    if any(word in lowered for word in _REJECTION_WORDS):
        yield from _REJECTION.finditer(lowered)
    if any(word in lowered for word in _REJECTION_WORDS_EUROPEAN):
        yield from _REJECTION_EUROPEAN.finditer(lowered)
    if not lowered.isascii():
        yield from _REJECTION_BEYOND.finditer(lowered)

"""The words around a statement of an answer, as regular expressions: English first, then other languages.

Every repetition is bounded and none is nested in an unbounded one, so matching is linear in the text. All patterns
meet text in Unicode's compatibility form (`：` is `:`, `（` is `(`). No pattern knows a label.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from helm_ext.parsing.spelling import MARKER

__all__ = [
    "APPOSITION",
    "CLAUSE_START",
    "CONCLUSION",
    "CONNECTIVE",
    "CONTINUATION",
    "CORRECTION",
    "DENIAL",
    "EARLIER",
    "ELSEWHERE",
    "ENDED",
    "FILLER",
    "FINAL",
    "HYPOTHESIS",
    "LEAD",
    "MODAL",
    "NEGATION",
    "OBJECTION",
    "PREDICATE",
    "RETURN",
    "SENTENCE_END",
    "STRANGER",
    "SUBJECT",
    "SUFFIX",
    "UNIT",
    "UNREAL",
    "VOID",
    "WEAKENED",
    "any_of",
    "find_apologies",
]

_FLAGS = re.IGNORECASE


def any_of(alternatives: str) -> str:
    """Return a pattern of any of the alternatives, which begin with a letter and have spaces between them.

    Those of one letter stand together, so that a letter that begins none of them is left at once.
    """
    by_letter: dict[str, list[str]] = {}
    for alternative in dict.fromkeys(alternatives.split()):
        by_letter.setdefault(alternative[0], []).append(alternative[1:])
    return "(?:" + "|".join(f"{letter}(?:{'|'.join(rests)})" for letter, rests in by_letter.items()) + ")"


SUBJECT = re.compile(
    r"\b(?:(?:i|we)(?:['’](?:d|ll|m|re|ve)|\sam|\sare)?|let['’]s|let\sus|let\sme|i['’]m)\s{1,2}"
    r"(?:(?:would|will|shall|must|have\sto|therefore|thus|then|now|still|going\sto|gonna)\s{1,2}){0,2}$|私は$|我$",
    _FLAGS,
)
"""Before a verb that introduces an answer: who chooses."""

CLAUSE_START = re.compile(
    rf"(?:^|[,:;.…(\[{{—–>{MARKER}]|\s-|\b(?:so|but|and|then|that|think|believe|guess|say|sure|thus|therefore"
    rf"|hence|because|bet|"
    r"is|\w{1,10}ly|instead|rather|sorry|oops|option|options|choice|choices|answer|answers|only|both|statement|statements|while|however|mean|meant|wait|no|"
    r"que|che|dass|что|most|very|quite|almost|nur|solo|las|los|die|the)|选项|選項|所以|因此|我|私は)[\s*_\"'(]{0,6}$",
    _FLAGS,
)
"""What ends before a clause begins."""

SENTENCE_END = re.compile(r"[.!?](?=[\s\"')*_]|$)|[;\n。！？；]")
"""What ends a sentence; the point in "3.5" does not."""

ENDED = re.compile(r"\W{0,3}(?:[.!;](?=\s|$)|$|\n)")
"""After an option: nothing more of its sentence."""

# What stands before an introduction and takes its meaning away.
_THINK = (
    r"(?:think|thinks|believe|believes|assume|guess|say|says|argue|suspect|suppose|expect|claim|claims"
    r"|said|claimed|thought|chose|picked|choose|pick|select|answer)"
)
_BAD = any_of(
    r"previous prior preceding other another earlier former old initial original first alternative second "
    r"second-best next runner-up worst wrong incorrect false bad poor opposite common popular tempting "
    r"plausible frequent typical invalid excluded rejected your his her their students?['’]s? неправильный "
    r"неверный falsche mauvaise incorrecta errada otra andere anterior"
)
_VOID = any_of(
    r"if whether unless suppose supposing assume assuming not isn['’]t least\slikely no don['’]t "
    r"doesn['’]t didn['’]t wouldn['’]t won['’]t can['’]t couldn['’]t cannot never neither doubtful deny "
    r"disagree unlikely impossible improbable false untrue hardly tempting tempted seem unsure unclear "
    r"may\sbe might\sbe could\sbe thought assumed nicht pas не"
)
_OTHERS = any_of(
    r"teachers? pupils? experts? critics? colleagues? classmates? friends? brother sister mother father neighbou?r "
    r"boss professor authors? beginners candidates respondents children kids learners textbooks? guessers readers "
    r"you one some nobody none many most people others they students someone anyone he she "
    r"m(?<!\bi\sm)(?<!\bwe\sm)(?:ight|ay)"
)
VOID = re.compile(
    rf"(?:\b(?:{_VOID}|(?<!\bno\s)(?<!\bnot\s)(?<!n['’]t\s)(?<!\bwithout\s)(?<!\bwithout\sa\s)doubts?"
    # What somebody else may think: "you might think the answer is", "some people say that".
    rf"|{_OTHERS}(?:[^\S\n]\w{{1,12}}){{0,2}}[^\S\n]{_THINK})"
    r"(?:[^\S\n]{1,2}[\"'(\[*_]{0,4}(?:that|the|my|your|our|correct|right|best|final|be|to|sure|certain|true|case|convinced|seem|it|"
    rf"option|choice|answer|{_THINK})){{0,5}}"
    r"|(?<!\bit)(?<!\bthat)(?<!\bhere)(?<!\blet)(?<!\bthere)['’]s(?:[^\S\n]\w{1,12}){0,1}"
    rf"|\b{_BAD}(?:[^\S\n][\w-]{{1,12}}){{0,2}}"
    r"|不|不能|不该|不会|不會|不应|没|沒|错误的?|錯誤的?)[^\S\n]{0,2}$",
    _FLAGS,
)
"""Before an introduction: it introduces no answer ("if the answer is", "the other option is", "不选")."""

HYPOTHESIS = re.compile(
    r"\b(?:if(?!\s(?:i|we)\s(?:had|have|must|need)\b|\sforced\b)|unless|suppose|supposing|assuming|otherwise|whereas|at\sfirst|initially|in\s(?:a|an|any)\s(?:different"
    r"|other|opposite)|under\s(?:different|other)|(?:next|previous|other|another|following)\s(?:question"
    r"|problem|exercise|case))\b|^\W{0,4}(?:had|were|should|si|se|wenn|falls|если|in\s(?:the|that)\scase)\b"
    r"|如果|假如|要是|若|もし|만약",
    _FLAGS,
)
"""In a sentence before a statement: what is said holds only then."""

MODAL = re.compile(r"\b(?:would|could|might)\b")
"""In an introduction: what is said may hold under a condition."""

UNREAL = re.compile(r"\bwould\shave\sbeen\b")
"""In an introduction: what is said does not hold."""

RETURN = re.compile(r"\b(?:but|however|yet|now|actually)\b", _FLAGS)
"""Behind a HYPOTHESIS in its sentence: what follows holds again."""

WEAKENED = re.compile(r"[^.!?\n]{0,80}\b(?:if|unless|were|had|only\swhen|otherwise|in\sthat\scase)\b", _FLAGS)
"""After a statement with MODAL: the condition."""

CONCLUSION = re.compile(
    r"\b(?:so|thus|therefore|hence|conclude|conclusion|finally|consequently|overall|donc|also|daher|quindi"
    r"|portanto)\b|所以|因此|故|综上|따라서|よって",
    _FLAGS,
)
"""In a sentence before a statement: it ends a chain of thought, and weighs more than what was said on the way."""

FINAL = re.compile(r"\bfinal\W{0,3}$", _FLAGS)
"""Before an introduction: nothing said before weighs as much."""

_APOLOGY = (
    r"\b"
    + any_of(
        r"sorry oops whoops apology apologies apologi[sz]e pardon forgive\sme my\sbad my\smistake my\serror typo "
        r"perd[oó]n\w{0,4} perdão perdona\w{0,3} disculp\w{1,4} lo\ssiento me\sequivoqu[eé] desculp\w{1,4} "
        r"me\senganei errei "
        r"scus[ai]\w{0,3} mi\ssono\ssbagliat[oa] désolée? excuse[zrs]?(?:[\s-](?:moi|me))? je\sme\ssuis\stromp\w{1,3} "
        r"entschuldig\w{1,6} verzeih\w{1,4} tut\smir\sleid geirrt het\sspijt\sme förlåt ursäkta beklager "
        r"omlouvám promiňte "
        r"извини\w{0,3} прости ошиб\w{1,4} вибач\w{1,4} przepraszam pomyłk\w özür maaf xin\slỗi "
        r"συγγνώμη عذر\w{1,2} آسف סליחה "
        r"माफ\w{0,3} क्षमा"
    )
    + r"\b"
)
_APOLOGY_BEYOND = r"|抱歉|对不起|對不起|不好意思|说错|說錯|弄错|すみません|ごめん|失礼|間違え|죄송|미안|실수|ขอโทษ"
_ASCII_APOLOGY = re.compile(_APOLOGY, _FLAGS)
_ANY_APOLOGY = re.compile(unicodedata.normalize("NFKC", _APOLOGY + _APOLOGY_BEYOND), _FLAGS)


def find_apologies(text: str, start: int) -> Iterator[re.Match[str]]:
    """Find what asks pardon for an answer that was wrong; the right one follows in the sentence. From `start` on."""
    return (_ASCII_APOLOGY if text.isascii() else _ANY_APOLOGY).finditer(text, start)


CORRECTION = re.compile(
    _ANY_APOLOGY.pattern + r"|\b(?:wait|actually|correction|correcting|mistake|mistaken|reconsider|recheck|rethink"
    r"|re-?examine|second\sthought|on\sreflection|re-?reading|misread|looking\sagain|thinking\sagain|(?:scratch|strike|cancel|forget)\sthat|never\smind"
    r"|i\smeant?|i\swas\swrong|was\sincorrect|changed?\smy|hold\son|no(?=,)|check\sagain|edit|update|revised"
    r"|corrección|correção|correzione|korrektur|rectification|correctie|korrekta|исправл\w{1,4}|en\srealidad|na\sverdade"
    r"|in\srealtà|en\sfait|eigentlich|na\ssamom\sdele|düzeltme)\b|на\sсамом\sделе|不对|更正|等等|訂正|정정|아니",
    _FLAGS,
)
"""Between two statements: the second one corrects the first."""

EARLIER = re.compile(
    r"\b(?:(?<!should\shave\s)(?<!should['’]ve\s)(?:said|written)|wrote|first|before|previous\w{0,2}|earlier|instead|rather|confus\w{1,3}|mixed|expected|dije"
    r"|(?<!debería\shaber\s)(?<!debí\shaber\s)dicho|detto|dit|écrit|gesagt|geschrieben|disse|сказал|for\ssaying"
    r"|because)\b",
    _FLAGS,
)
"""Behind an APOLOGY: what follows is what was wrong; not so "I should have said"."""

_OCCASION = (
    r"(?:question|problem|exercise|exam|test|quiz|paper|puzzle|task|item|case|version|edition|example|section"
    r"|chapter|round|riddle|statement|claim|sentence|passage)s?"
)
ELSEWHERE = re.compile(
    rf"\b(?:next|previous|prior|last|earlier|another|other|following|preceding|subsequent|second|old|older)"
    rf"(?:\s[\w'’]{{1,12}})?\s{_OCCASION}\b|\b(?:last|previous|next)\s(?:year|time|week|month|term|semester)"
    rf"|\b(?:practice|mock|sample|trial|similar|related|midterm)(?:\s\w{{1,12}})?\s{_OCCASION}\b|\bback\sin\s|\bin\s(?:1[5-9]|20)\d\d,?\s|\byears?\sago\b|\byesterday\b|\bused\sto\b"
    r"|\b(?:in|for|to|on|of)\s(?:question|problem|exercise|number|no\.|part|item|task)\s?#?\d{1,3}\b"
    r"|\b(?:l['’]année\sdernière|la\squestion\s(?:suivante|précédente)|l['’]autre\squestion|letzte[sn]?\s(?:jahr|mal)"
    r"|(?:nächste|vorige|andere|letzte|vorherige)n?\sfrage|el\saño\spasado|(?:otra|siguiente)\spregunta"
    r"|(?:pregunta|examen|pergunta|exame|prova|domanda|esame)\s(?:anterior|siguiente|seguinte|precedente|successiva)"
    r"|(?:anterior|siguiente|otro)\s(?:pregunta|examen)|(?:outra|próxima)\spergunta|ano\spassado|anno\sscorso"
    r"|(?:altra|prossima)\sdomanda|прошл\w{2,3}|следующ\w{2,3}\sвопрос\w{0,2}|предыдущ\w{2,3}|друго\w{1,2}\sвопрос\w)\b"
    r"|上一题|下一题|上题|下题|另一题|前一题|去年|其他题|前の問題|次の問題|昨年|지난|다음\s문제|이전\s문제",
    _FLAGS,
)
"""In a sentence: what is said in it is about another question, exam or year."""

NEGATION = re.compile(
    r"\b(?:not|never|neither|nor|isn['’]t|aren['’]t|wasn['’]t|doesn['’]t|don['’]t|cannot|can['’]t|couldn['’]t"
    r"|wrong|incorrect|might|may|could|"
    r"if|unless|whether|perhaps|maybe|no\slonger|hardly|says|states|claims|nicht|pas|не|non|não|no\ses)\b|不|没",
    _FLAGS,
)
"""In a sentence: what it says of an option is denied, doubted, or only quoted."""

FILLER = re.compile(
    r"(?:[\s:*_,]{0,6}(?:(?:indeed|therefore|thus|then|hence|so|clearly|definitely|certainly|obviously|probably"
    r"|most\slikely|likely|"
    r"simply|actually|rather|of\scourse|in\sfact|instead|now|just|only|either|both|option|options|choice|answer|antwort|réponse|respuesta|resposta|risposta|antwoord|svar|ответ|statement|nur|solo|sólo|só|seulement|noch|только|лишь|tylko|alleen|bara"
    r"|answers|letter|letters|number|label|the|that|to|"
    r"i\s(?:would\s|will\s)?(?:think|believe|guess|say|choose|pick|go\swith)|i['’]d\s(?:say|choose|pick"
    r"|go\swith)|donc|also|daher|quindi|portanto|logo|entonces|dus|więc|it\sis|it['’]s|it\smust\sbe|"
    r"la|le|las|les|el|los|die|der|das|den|opción|opção|opzione|alternativa|(?:a|à)\s(?:letra|alternativa"
    r"|opção)|letra|lettre|"
    r"lettera|буква|вариант|под\sбуквой|الخيار|الحرف)\b|100\s?%|选项|選項|选择|選擇)){0,5}(?:,\s)?",
    _FLAGS,
)
"""Between an introduction and the label. May be empty."""

DENIAL = re.compile(
    r"\s{0,3}(?:(?:definitely|certainly|clearly|also|probably)\s)?(?:(?:not|never|nicht|pas|не|no|non|não|niet|nie)\b|不)",
    _FLAGS,
)
"""Between an introduction and the label: the label is denied."""

LEAD = re.compile(
    r"[\s*_#>•]{0,12}(?:-\s{1,3})?(?:(?:(?:option|options|choice|answer|ans|letter|label|number|it\sis|it['’]s"
    r"|it\smust\sbe|it\sshould\sbe|so|"
    r"thus|therefore|hence|i\sthink|i\sbelieve|probably|definitely|both|only|certainly|surely"
    r"|as\s(?:i\s|we\s|was\s|is\s|has\sbeen\s|already\s){0,2}(?:explained|shown|stated|noted|discussed|seen|mentioned|described|said|established)"
    r"(?:\s(?:above|before|earlier|already|below)){0,2}(?=,)"
    r"|q(?:uestion)?\s?\d{1,3}(?=\s?[:.)])|(?:(?:la|el|a|die|das|the|de|het|l['’]|las|as|les|le|los|gli)\s)?(?:opci[óo]n(?:es)?|opç(?:ão|ões)|opzion[ei]"
    r"|alternativas?|letras?|réponses|respuestas|respostas|risposte|antworten|ответы|варианты)|"
    r"antwort|réponse|respuesta|resposta|risposta|вариант|ответ|الخيار)\b|100\s?%(?=\s)(?:\ssure)?|选项|選項)[\s,:.)*]{0,4}(?:-\s)?){0,3}",
    _FLAGS,
)
"""Before a label at the very start of a completion or a line. May be empty."""

PREDICATE = re.compile(
    r"(?:\b(?:is|are|was|were|equals|should|must|be|by|as|called|towards?|with|only|that|like|suggest|recommend|rispondo|respondo|este|je|jest|on|es|est"
    r"|ist|é|è|är)\b|(?P<equals>=|\b(?:equals|gives|makes|yields|totals|comes\sto|adds\sup\sto)\b)|(?<=\w)['’]s(?=\s)|是|は|은|는"
    r"|(?<!options)(?<!choices)(?<![\"']):(?=\s)|^[^\s,:.]{1,12}(?:\s[^\s,:.]{1,12}){0,5},(?=\s))\s{0,3}"
    r"(?:(?:that|to|called|named|known\sas)\s{1,2}){0,2}",
    _FLAGS,
)
"""Before an option that a sentence ends in: "The capital of France is Paris."."""

CONNECTIVE = re.compile(
    r"[^\S\n]{0,3}(?:(?P<mark>[,;/|&+、~])[^\S\n]{0,3})?"
    r"(?:(?:(?:(?P<either>(?:or|maybe|perhaps|possibly|versus|vs|oder|ou|или|أو|ya\sda|veya|lub|albo|eller|atau|hoặc)\b|还是|或者?|または|또는)|"
    r"(?P<both>(?:and|und|et|also|as\swell\sas|en|och|og|ve|dan|oraz|și|và)\b|[和与與及跟と]|와|과|하고))[^\S\n]{0,3}){1,3}"
    # Words of one letter are labels, too.
    r"|(?<=\s)(?:(?P<one_of>o)|(?P<all_of>[yeиіia]))[^\S\n](?=\S))?"
    r"(?:(?:also|maybe|perhaps|both|options?|choice|the)[^\S\n]{1,3}){0,2}",
    _FLAGS,
)
"""After an option, before another one: more than one is meant. Counts where `mark`, `both` or `either` is there."""

STRANGER = re.compile(r"\s?[\"'(\[*]{0,3}(?:[A-Za-z]|\d{1,3})[\"')\]*]{0,3}[^\S\n]{0,2}(?:[.,;]?[^\S\n]{0,2}(?:$|\n))")
"""After a CONNECTIVE: what looks like a label and is none of the question's."""

CONTINUATION = re.compile(
    r"[^\S\n]{0,3}(?:[-–—](?=\s)|—|\((?=\S)|(?:because|since|due\sto|based\son|rather\sthan|instead(?:\sof\b"
    r"|(?=\s?[.,;!]|\s?$))|"
    r"as(?!\s(?:a|an|my)\s(?!(?:\w{1,12}\s){0,2}(?:answer|choice|option|one))|\s(?:well|in|for|if|long|soon|yet"
    r"|of|such|usual|your)\b|-)(?=\s)|"
    r"for\s(?:the\s(?:following|same|above|simple|reason|second|first)|it|this|these|that|several|example)|"
    r"which|with\sre(?:spect|gard)|given\s(?:the|that|this|these|those|its|it|how|our|what)"
    r"|over\s\W{0,3}\w{1,20}\W{0,3}(?:$|\n|[.,;])|"
    r"so\s(?:the|it|that|this|my|we)|(?:but|and)\s(?:not|here|it|its|this|that|so|the\s(?:reason|explanation"
    r"|others?|rest))|"
    r"not\s[^\s.,;]{1,20}(?:[.,;!]|\s?$|\n|\s(?:because|since|as)\b)|although|though|whereas|while(?!\s(?:ago"
    r"|later|back|longer)\b)|"
    r"i\.e\.|e\.g\.|i\s(?:think|believe|guess)|in\sthis\scase|when|where|(?:indeed|definitely|certainly"
    r"|obviously|clearly|surely|only|alone|for\ssure|for\scertain|of\scourse|final\sanswer|here|over|übrig|left)(?=\s?[.,;!]"
    r"|\s?$|\n|\s(?:because|since|as)\b)|explanation|reason(?:ing)?|"
    r"(?:it|that|this|they|there|he|she)(?:['’]s|\s(?:is|was|does|do|did|has|have|can|will|are|were|would"
    r"|isn['’]t|doesn['’]t|don['’]t|"
    r"can['’]t|didn['’]t|wasn['’]t))|"
    r"porque|pues|pois|ya\sque|parce|car|puisque|weil|denn|perché|poiché|porquê|потому|так\sкак|тому\sщо|çünkü"
    r"|karena|vì|ponieważ|omdat|want|"
    r"eftersom|(?:şıkk|seçene)\w{1,6}|كيونكه|لأن|क्योंकि|है)(?!\w)|因为|因為|理由|は)",
    _FLAGS,
)
"""After a label or a text that nothing else sets off: prose that may follow an answer. The same for every label."""

UNIT = re.compile(
    r"\s(?!(?:hundred|thousand|million|billion|trillion|dozen|percent|times|or|and|to|more|less|plus|minus|by|of|in|"
    r"out|is|are|was)\b)"
    r"[^\W\d_]{2,14}(?=\s?[.,;!)]|\s?$|\n)",
    _FLAGS,
)
"""After an option's text that ends in a number: what is counted ("18 apples")."""

APPOSITION = re.compile(
    r",?\s{0,2}(?:for\sone|too|myself|personally|as\s(?:an?|your)\s(?!(?:\w{1,12}\s){0,2}(?:answer|choice"
    r"|option))|on\sthe\sother\shand|therefore|however|like)\b",
    _FLAGS,
)
"""After a label and a comma: the word before was the subject of a sentence ("I, for one, ...")."""

SUFFIX = re.compile(
    r"['’](?:dir|dır|dur|dür|tir|tır)\b|(?:选项|選項|项|項|号|號|番|번)?(?:吧|了|啊|呢|です|だと思います|だと思う|だ|である|でしょう|입니다|이다|이에요|예요)?",
    _FLAGS,
)
"""What may be written together with a label. May be empty."""

OBJECTION = re.compile(
    r"[\s:;,*_–—-]{0,6}[❌✗✘✖❎×☒]|[\s:;,*_–—-]{0,6}(?:is|are|was|were|isn['’]t|aren['’]t|can|cannot|can['’]t|could|may|might|would|does"
    r"|doesn['’]t|has|"
    r"or|vs|versus|means|refers|says|states|suggests|seems|incorrect|wrong|not\s(?:correct|right|true)|false)\b",
    _FLAGS,
)
"""After a label at the start of a completion: a sentence *about* the option, not an answer."""

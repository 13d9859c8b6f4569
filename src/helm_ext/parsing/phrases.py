"""The words around a statement of an answer, and those that introduce or declare one, as regular expressions.

English first, and the plain forms of other languages.

Every repetition is bounded and none is nested in an unbounded one, so matching is linear in the text. All patterns
meet text in lower case, as `options.simplify` leaves it: `：` is `:`, `’` is `'`. In them a space is any white space.
No pattern knows a label.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from helm_ext.parsing.options import MARKER


def compile_words(pattern: str) -> re.Pattern[str]:
    """Compile a pattern in the form in which it meets the text: a Thai vowel is two characters there."""
    return re.compile(unicodedata.normalize("NFKC", pattern).replace(" ", r"\s"))


def any_of(alternatives: str) -> str:
    """Return a pattern of any of the alternatives, which begin with a letter and have spaces between them.

    Those of one letter stand together, so that a letter that begins none of them is left at once; `_` is a space.
    """
    by_letter: dict[str, list[str]] = {}
    for alternative in dict.fromkeys(alternatives.replace("_", r"\s") for alternatives in alternatives.split()):
        by_letter.setdefault(alternative[0], []).append(alternative[1:])
    return "(?:" + "|".join(f"{letter}(?:{'|'.join(rests)})" for letter, rests in by_letter.items()) + ")"


# Words that several patterns share, in all languages.
SURELY = r"(?:indeed|definitely|certainly|clearly|surely|obviously|probably|likely|also)"
SO = r"(?:so|thus|therefore|hence|finally|donc|also|quindi|logo|somit)"
NOT = r"(?:not|never|nicht|niet|pas|non|não|nie|не)"
_BACK = (
    r"(?:(?:scratch|strike|cancel|forget) that|never mind|correction|corrección|correção|correzione|korrektur|wait"
    r"|actually|edit)"
)
_COPULA = r"(?:es|son|é|são|è|sono|está|estão|est|sont|ist|sind|är|is|zijn)"
_REPLY = (
    r"(?:respuestas?|respostas?|rispost[ae]|r[eé]ponses?|antwort(?:en)?|antwoord|svar|opci[óo]n(?:es)?|opç\w{1,3}"
    r"|opzion[ei]|alternativas?|letras?|letter[ae]|ответы?|вариант\w?)"
)
_RIGHT = any_of(
    r"right true yes valid best answer richtig\w{0,2} korrekt\w{0,2} juist\w? rätt wahr ja corr(?:ect|ett?)[oae]?s? "
    r"verdader[oa] sí sim cert[oa] ver[oa] giust[oa] vrai juste bonne exacte? oui верн\w{1,2} правильн\w{1,2} да"
)
RIGHT = rf"(?:{_RIGHT}\b|正确|正確|对|對|正解|正しい|맞|정답)"
_WRONG = any_of(
    r"incorr(?:ect|ett?)[oae]?s? wrong false invalid untrue eliminated falsch nein fals[oa]s? errad[oa]s? sbagliat\w "
    r"faux fausse?s? неверн\w{1,2} неправильн\w{1,2} нет no not never nicht niet pas non não nie не"
)
WRONG = rf"(?:{_WRONG}\b|错|錯|不正|不对|不對|誤|間違|不正解|틀|오답)"

SUBJECT = compile_words(
    r"\b(?:(?:i|we)(?:'(?:d|ll|m|re|ve)| am| are)?|let(?:'s| us| me)) {1,2}(?:(?:would|will|shall|must|have to"
    rf"|{SO}|then|now|still|going to) {{1,2}}){{0,2}}$|我$|私は$"
)
"""Before a verb that introduces an answer: who chooses."""

CLAUSE_START = compile_words(
    rf"(?:^|[,:;.…(\[{{—–>{MARKER}]| -|\b(?:but|and|then|that|think|believe|guess|say|sure|{SO}|because|bet|is"
    r"|\w{1,10}ly|instead|rather|sorry|oops|options?|choices?|answers?|only|both|statements?|while|however|mean|meant"
    r"|wait|no|que|che|dass|что|most|very|quite|almost|nur|las|los|die|the)|选项|選項|所以|因此|我|私は)[ *_\"'(]{0,6}$"
)
"""What ends before a clause begins."""

SENTENCE_END = re.compile(r"[.!?;\n。！？；](?:(?<![.!?])|(?=[\s\"')*_]|$))")
"""What ends a sentence; the point in "3.5" does not."""

ENDED = re.compile(r"\W{0,3}(?:[.!;](?=\s|$)|$|\n)")
"""After an option: nothing more of its sentence."""

# What stands before an introduction and takes its meaning away.
_THINK = (
    r"(?:think|believe|assume|guess|say|argue|suspect|suppose|expect|claim|said|claimed|thought|chose|picked|choose"
    r"|pick|select|answer)"
)
_BAD = any_of(
    r"previous prior preceding other another earlier former old initial original first alternative second(?!_thought) "
    r"second-best next runner-up worst wrong incorrect false bad poor opposite common popular tempting plausible "
    r"frequent typical invalid excluded rejected your his her their students?'s? anterior"
)
_VOID = any_of(
    r"if whether unless suppose supposing assume assuming not isn't least_likely no don't doesn't didn't wouldn't "
    r"won't can't couldn't cannot never neither doubtful deny disagree unlikely impossible improbable false untrue "
    r"hardly tempting tempted seem unsure unclear may_be might_be could_be assumed nicht pas не"
)
VOID = compile_words(
    rf"(?:\b(?:{_VOID}|(?<!\bsecond )thought|(?<!\bno )(?<!\bnot )(?<!n't )(?<!\bwithout )(?<!\bwithout a )doubts?"
    # What somebody else may think: "you might think the answer is", "some people say that", "the author believes".
    r"|(?:you|one|some|nobody|none|many|most|people|others|they|someone|anyone|he|she|m(?<!\bi m)(?<!\bwe m)(?:ight"
    rf"|ay))(?:[^\S\n]\w{{1,12}}){{0,2}}[^\S\n]{_THINK}|\w{{3,20}}s(?:[^\S\n](?:might|may|would|often))?[^\S\n]{_THINK}"
    r"|(?:thinks|believes|says|claims|argues|(?<!\bi )(?<!\bwe )(?:said|claimed)))"
    r"(?:[^\S\n]{1,2}[\"'(\[*_]{0,4}(?:that|the|my|your|our|correct|right|best|final|be|to|sure|certain|true|case"
    rf"|convinced|seem|it|option|choice|answer|{_THINK})){{0,5}}"
    r"|(?<!\bit)(?<!\bthat)(?<!\bhere)(?<!\blet)(?<!\bthere)'s(?:[^\S\n]\w{1,12})?"
    rf"|\b{_BAD}(?:[^\S\n][\w-]{{1,12}}){{0,2}}|[不没](?:能|该|会)?|[错錯][误誤]的?)[^\S\n]{{0,2}}$"
)
"""Before an introduction: it introduces no answer ("if the answer is", "the other option is", "不选")."""

DENIED = compile_words(
    rf"\b(?:{NOT}|nor|no es|(?:unlike|rather than|instead of)(?: [^.,;:]{{1,30}} (?:and|or))?)"
    r"(?: (?:the|an?|option|choice|answer|letter))? {1,2}\W?$|不是?$"
)
"""Before an option: it alone is denied."""

HYPOTHESIS = compile_words(
    r"\b(?:if(?! (?:i|we) (?:had|have|must|need)\b| forced\b)|unless|suppose|supposing|assuming|otherwise|whereas"
    r"|at first|initially|(?:in|under) (?:(?:a|an|any) )?(?:different|other|opposite)|(?:next|previous|other|another"
    r"|following) (?:question|problem|exercise|case))\b|^\W{0,4}(?:had|were|should|si|se|wenn|falls|in (?:the"
    r"|that) case)\b|如果|만약"
)
"""In a sentence before a statement: what is said holds only then."""

MODAL = re.compile(r"\b(?:would|could|might)\b")
"""In an introduction: what is said may hold under a condition."""

UNREAL = re.compile(r"\bwould\shave\sbeen\b")
"""In an introduction: what is said does not hold."""

RETURN = compile_words(r"\b(?:but|however|yet|now|actually)\b")
"""Behind a HYPOTHESIS in its sentence: what follows holds again."""

CONCLUSION = compile_words(
    rf"\b(?:{SO}|(?:which|this|that) means|conclude|conclusion|consequently|overall)\b|所以|因此|故|综上|よって"
)
"""In a sentence before a statement: it ends a chain of thought, and weighs more than what was said on the way."""

FINAL = compile_words(r"\bfinal\W{0,3}$")
"""Before an introduction: nothing said before weighs as much."""

_APOLOGY = (
    r"\b"
    + any_of(
        r"sorry oops whoops apolog\w{1,4} pardon forgive_me my_bad my_mistake my_error typo perd[oóã]n?\w{0,4} "
        r"disculp\w{1,4} lo_siento me_equivoqu[eé] desculp\w{1,4} me_enganei errei scus[ai]\w{0,3} "
        r"mi_sono_sbagliat[oa] désolée? excuse[zrs]?(?:[\s-](?:moi|me))? je_me_suis_tromp\w{1,3} entschuldig\w{1,6} "
        r"verzeih\w{1,4} tut_mir_leid geirrt извини\w{0,3} прости ошиб\w{1,4} вибач\w{1,4} przepraszam özür عذر\w{1,2} "
        r"माफ\w{0,3}"
    )
    + r"\b|抱歉|对不起|不好意思|说错|すみません|間違え|죄송|ขอโทษ"
)
APOLOGY = compile_words(_APOLOGY)
"""What asks pardon for an answer that was wrong; the right one follows in the sentence."""

CORRECTION = compile_words(
    _APOLOGY + rf"|\b(?:{_BACK}|correcting|mistaken?|reconsider|recheck|rethink|re-?examine|second thought"
    r"|on reflection|re-?reading|misread|(?:looking|thinking|check) again|i meant?|i was wrong|was incorrect"
    r"|changed? my|hold on|no(?=,)|update|revised|исправл\w{1,4}|düzeltme)\b|不对|아니"
)
"""Between two statements: the second one corrects the first."""

EARLIER = compile_words(
    r"\b(?:(?<!should have )(?<!should've )(?:said|written)|wrote|first|before|previous\w{0,2}|earlier|instead|rather"
    r"|confus\w{1,3}|mixed|expected|(?<!debería haber )(?<!debí haber )dicho|dit|because)\b"
)
"""Behind an APOLOGY: what follows is what was wrong; not so "I should have said"."""

_OCCASION = (
    r"(?:question|problem|exercise|exam|test|quiz|paper|puzzle|task|item|case|version|edition|example|section|chapter"
    r"|round|riddle|statement|claim|sentence|passage)s?"
)
_OTHER = (
    r"(?:derni[eè]re|suivante|précédente|autre|letzte[sn]?|vorige|anterior|siguiente|otr[oa]|successiva|próxima"
    r"|прошл\w{2,3}|следующ\w{2,3}|предыдущ\w{2,3}|друго\w{1,2})"
)
_TIME = r"(?:question|année|frage|jahr|mal|pregunta|pergunta|examen|exame|domanda|год\w?|вопрос\w{0,2})"
_OTHERS = any_of(
    "next previous prior last earlier another other following preceding subsequent second older? practice mock sample "
    "trial similar related midterm"
)
ELSEWHERE = compile_words(
    rf"\b(?:{_OTHERS}(?: [\w']{{1,12}})? {_OCCASION}\b|(?:last|previous|next) (?:year|time|week|month|term|semester)"
    r"|back in |in (?:1[5-9]|20)\d\d,? |years? ago\b|yesterday\b|used to\b|(?:in|for|to|on|of) (?:question|problem"
    rf"|exercise|number|no\.|part|item|task) ?#?\d{{1,3}}\b|{_OTHER} {_TIME}\b|{_TIME} {_OTHER}\b)"
    r"|[上下其][一他]?题|이전 문제"
)
"""In a sentence: what is said in it is about another question, exam or year."""

_DENYING = (
    rf"\b(?:{_WRONG}|neither|nor|weder|ni|(?:all|any\w*|every\w*) (?:but|except)|cannot|\w{{2,6}}n't|no longer|unlikely"
    r"|hardly)\b|不|没"
)
DENYING = compile_words(
    rf"{_DENYING}|\b(?:(?:rul|eliminat|exclud|discard|dismiss)\w{{0,4}}|out|too [a-z]{{3,12}})\b|排除"
)
"""In a sentence: it says that options are wrong."""

_UNSURE = r"(?:n't|not) (?:know|recall|remember|tell|say|decide|familiar)"
UNSURE = compile_words(_UNSURE)
"""In the last sentence: what was said before is no answer."""

_DOUBT = (
    r"\b(?:might|may|could|if|whether|perhaps|maybe|possibly|either(?! ?[.,;!])|unclear|unknown|unable|depends|sure"
    rf"|else|{_UNSURE}|(?:n't|not) (?:all|both)|never been|says|states|claims|asks|mentions|discuss(?:es)?"
    r"|(?:i|we) (?:am|was|were|lived?|went|came|grew|visit)"
    r"|(?<!\bi )(?<!\bwe )would (?:say|think|guess|choose|pick|answer))\b"
)
DOUBT = compile_words(_DOUBT)

NEGATION = compile_words(f"{_DENYING}|{_DOUBT}")
"""In a sentence: what it says of an option is denied, doubted, or only quoted."""

_OPTION = rf"(?:(?:la|el|a|die|das|the|de|het|l'|las|as|les|le|los|gli) )?{_REPLY}"
_WORDS = (
    rf"(?:{SO}|{SURELY}|then|most likely|simply|actually|rather|plutôt|eher|of course|in fact|instead|now|just|only"
    r"|either|both|options?|choice|answers?|ans|statement|letters?|number|label|the|that|to|nur|dus|it is|it's"
    r"|it (?:must|should) be|à|i(?:'d| would| will)? (?:think|believe|guess|say|choose|pick|go with)"
    rf"|la|le|las|les|el|los|die|der|das|den|é|è|est|ist|{_OPTION})\b|100 ?%(?= )(?: sure)?|[选選](?:[项項]|择|擇)"
)
FILLER = compile_words(rf"(?:[ :*_,]{{0,6}}(?:{_WORDS})){{0,5}}(?:, |、)?")
"""Between an introduction and the label. May be empty."""

DENIAL = compile_words(rf" {{0,3}}(?:{SURELY} )?(?:(?:{NOT}|no)\b|不)")
"""Between an introduction and the label: the label is denied."""

LEAD = compile_words(
    rf"[ *_#>•]{{0,12}}(?:- {{1,3}})?(?:(?:{_WORDS}|as (?:\w{{1,7}} ){{0,3}}(?:explained|shown|stated|noted|discussed"
    r"|seen|mentioned|described|said|established)(?: (?:above|before|earlier|already|below)){0,2}(?=,)"
    r"|q(?:uestion)? ?\d{1,3}(?= ?[:.)]))[ ,:.)*]{0,4}(?:- )?){0,3}"
)
"""Before a label at the very start of a completion or a line. May be empty."""

_LINKS = any_of(
    "is are was were equals should must be by as called towards? with only that like suggest recommend rispondo este "
    "je on es est ist é è är"
)
PREDICATE = compile_words(
    rf"(?:\b(?:{_LINKS}|(?P<equals>gives|makes|yields|totals|comes to|adds up to))\b|(?P<sign>[=≈])|(?<=\w)'s(?= )"
    r"|是|は|은|는|(?<!options)(?<!choices)(?<![\"']):(?= )|^[^ ,:.]{1,12}(?: [^ ,:.]{1,12}){0,5},(?= )) {0,3}"
    r"(?:(?:that|to|called|named|known as) {1,2}){0,2}"
)
"""Before an option that a sentence ends in: "The capital of France is Paris."."""

CONNECTIVE = compile_words(
    r"[^\S\n]{0,3}(?:\((?=and\b|or\b))?(?:(?P<mark>[,;/|&+、~])[^\S\n]{0,3})?(?:(?:(?:(?P<either>(?:or|maybe|perhaps|possibly|versus|vs"
    r"|oder|ou|или|ya da|eller|hoặc)\b|或者?|또는)|(?P<both>(?:and|und|et|also|as well as|en|och|og|ve|dan|và)\b"
    r"|[和与與及跟と]|와|하고))[^\S\n]{0,3}){1,3}"
    # Words of one letter are labels, too.
    r"|(?<= )(?:(?P<one_of>o)|(?P<all_of>[yeиіia]))[^\S\n](?=\S))?(?:(?:also|maybe|perhaps|arguably|both|options?"
    r"|choice|the)[^\S\n]{1,3}){0,2}"
)
"""After an option, before another one: more than one is meant. Counts where `mark`, `both` or `either` is there."""

STRANGER = compile_words(r" ?[\"'(\[*]{0,3}(?:[a-z]|\d{1,3})[\"')\]*]{0,3}[^\S\n]{0,2}[.,;]?[^\S\n]{0,2}(?:$|\n)")
"""After a CONNECTIVE: what looks like a label and is none of the question's."""

_NO_EXAMPLE = r"(?!(?:\w{1,12} ){0,2}(?:answer|choice|option|one))"
CONTINUATION = compile_words(
    r"[^\S\n]{0,3}(?:[-–—](?= )|—|\((?=\S)|(?:because|since|due to|based on|rather than|instead(?: of\b|(?= ?[.,;!]"
    rf"| ?$))|as(?! (?:a|an|my) {_NO_EXAMPLE}| (?:well|in|for|if|long|soon|yet|of|such|usual|your)\b|-)(?= )"
    r"|for (?:the (?:following|same|above|simple|reason|second|first)|it|this|these|that|several|example)|which"
    r"|with re(?:spect|gard)|given (?:the|that|this|these|those|its|it|how|our|what)|over \W{0,3}\w{1,20}\W{0,3}(?:$"
    r"|\n|[.,;])|so (?:the|it|that|this|my|we)|(?:but|and) (?:not|here|it|its|this|that|so|the (?:reason|explanation"
    r"|others?|rest))|not [^ .,;]{1,20}(?:[.,;!]| ?$|\n| (?:because|since|as)\b)|although|though|whereas"
    r"|while(?! (?:ago|later|back|longer)\b)|i\.e\.|e\.g\.|i (?:think|believe|guess)|in this case|when|where"
    rf"|(?:{SURELY}|only|alone|for sure|for certain|of course|final answer|here|over|left)(?= ?[.,;!]| ?$|\n"
    r"| (?:because|since|as)\b)|explanation|reason(?:ing)?|(?:it|that|this|they|there|he|she)(?:'s| (?:(?:is|was|does"
    r"|do|did|has|have|can|will|are|were|would)(?:n't)?|can't))|porque|pues|pois|ya que|parce|car|weil|denn|perché"
    r"|poiché|потому|vì|ponieważ|omdat|want|qui|şıkk\w{1,6}|है)(?!\w)|因[为為]|は)"
)
"""After a label or a text that nothing else sets off: prose that may follow an answer. The same for every label."""

UNIT = compile_words(
    r" (?!(?:hundred|thousand|million|billion|trillion|dozen|percent|times|or|and|to|more|less|plus|minus|by|of|in|out"
    r"|is|are|was)\b)[^\W\d_]{2,14}(?= ?[.,;!)]| ?$|\n| (?:are|is|were|left|remain|in (?:total|all))\b)"
)
"""After an option's text that ends in a number: what is counted ("18 apples")."""

APPOSITION = compile_words(
    rf",? {{0,2}}(?:for one|too|myself|personally|as (?:an?|your) {_NO_EXAMPLE}|on the other hand|therefore|however"
    rf"|like)\b"
)
"""After a label and a comma: the word before was the subject of a sentence ("I, for one, ...")."""

SUFFIX = compile_words(r"'[dt][iı]r\b|(?:选项|選項|项|번)?(?:吧|了|です|[にと]なります|だと思います|だ|입니다|이다)?")
"""What may be written together with a label. May be empty."""

OBJECTION = compile_words(
    r"[ :;,*_–—-]{0,6}(?:[❌✗✘✖❎×☒]|(?:is|are|was|were|(?:is|are|ca|does)n't|can|cannot|could|may|might|would|does"
    r"|has|or|vs|versus|means|refers|says|states|suggests|seems|incorrect|wrong|not (?:correct|right|true)|false)\b)"
)
"""After a label at the start of a completion: a sentence *about* the option, not an answer."""


# ---- What introduces an answer or declares one

# What introduces an answer. For example: "answer is", "answer:", "option -", "choice for this question would be".
_COLON = r"[\"'*_]{0,3} {0,2}(?:[:=→⇒|]|[-=]>|\((?=[\"']))"
_DASH = r" [-–—](?= )"
_BE = r"(?:is|are|was|were|(?:must|should|would|will|(?:has|have) to|would have) be(?:en)?)"
_IS = rf"(?:(?:'s| {{1,3}}{_BE})\b|{_COLON}|{_DASH}|[\]】] {{0,2}}|\*\*[^\S\n]{{1,2}})"
_GOOD = r"(?:correct|right|best|true|proper|appropriate|accurate|suitable|likely|final)"
_NOUN = (
    rf"(?:{_GOOD}[^\S\n](?:ones?|options?|choices?|letters?|statements?|picks?)|answers?|option|choice|solution"
    r"|selection|response|conclusion|letter|pick|guess|verdict|decision)(?: {1,3}(?:here|therefore|thus|then|choice"
    r"|option|letter|(?:to|for) (?:this|the|your) (?:question|problem|puzzle)))?"
)
_FOREIGN_NOUN = (
    rf"(?:{_REPLY}|lösung|odpowied[źz]i?|cevap(?:lar)?|yanıt|jawaban(?:nya)?|svaret|correc?ta|richtig|odpověď|vastaus"
    r"|válasz|răspuns(?:ul)?|đáp án|ответ(?:ом)?|вариант|відповідь|απάντηση|उत्तर|जवाब|คำตอบ|الإجابة|الجواب"
    r"|پاسخ|ה?תשובה)"
)
_FOREIGN_IS = (
    rf"(?: (?:{_COPULA}|e'|je|este|on|lautet|to|adalah|là|είναι|هي|это"
    r"|является|היא|הוא)\b| ?คือ| {0,2}[:=—–]| -(?= ))"
)
_BARE_NOUN = r"(?:(?:верн|правильн)\w{1,3} (?:вариант|ответ)\w{0,2}|cevap(?:lar)?|yanıt|उत्तर|ответ|вариант|đáp án)(?= )"
_CHINESE_JAPANESE = (
    r"(?:答案|正解|答え|回答|正[确確](?:[选選][项項])?的?|[选選][项項]|答)[】\]]?[应應]?[该該]?就?(?:[是为选選はが]:?"
    r"| {0,2}:|(?<=[】\]]))|(?:[选選][择擇]?):?|正しくは"
)
_KOREAN = r"(?:정답|답)(?:은|는| ?:)"
_VERB = (
    r"(?:choos(?:e|ing)|chosen?|lean(?:ing)? towards?|pick(?:ed|ing)?|select(?:ed|ing)?|say|take|guess|think|believe"
    r"|answer|mark|(?:go|going|went) (?:with|for)|opt(?:ing)? for|vote for|settle on|stick with)\b"
)
_FOREIGN_VERB = (
    r"(?:el(?:i[gj]|egi)\w{1,4}|esco[jl]\w{1,4}|choisi\w{1,4}|wähle|nehme|выбираю|scelgo|kies|wybieram|seçiyorum|chọn"
    r"|dir(?:ais|ía|ia)|pilih|väljer)\b"
)
_PRONOUN = rf"(?:(?:it|that|this|which)(?:'s| {_BE}| can only be)\b|c'est\b|(?:es|è) (?=l[ae]\b)|(?:es|das) ist\b)"
_ELLIPSIS = rf"(?:(?:{SO}|{SURELY})\b|[-=]>|→|⇒|∴|所以|因此|よって)"
_CORRECTING = (
    r"(?:i (?:meant?|wanted|intended)(?: to (?:say|write|answer|put|choose|pick|type))?|ich meinte|je voulais dire"
    r"|ik bedoelde|quer[ií]a decir|volevo dire|intendevo|quis dizer|я имела? в виду|я хотела? сказать|make (?:it|that)"
    rf"|{_BACK}|on second thought|no|nope|rather|sorry|oops|to change my answer to)\b"
    r"(?:[,:;.!…–—-]{0,3} {1,2}(?:no|wait|sorry|actually|rather|i meant?)\b){0,3}[,:;.!…–—-]{0,3} {0,2}"
)
_LEFT = (
    r"(?:leav(?:es|ing)(?: us)?(?: with)?|(?:only|last|one) (?:one|option|choice|answer|candidate) (?:left|remaining"
    r"|standing|that (?:remains|is left))(?: (?:is|being))?|remain(?:s|ing)(?: (?:option|choice|one|answer"
    rf"|candidate))?(?: is|,|{_COLON})?|ne reste(?: donc)? que|il reste|(?:übrig )?bleibt|queda|rimane|resta|остаётся"
    r"|blijft|còn lại(?: là)?)\b|只?剩下?的?(?:是|为|就是)?|残るのは|남는?"
)

_FIELD = (  # what holds the answer in a form, in JSON and the like
    r"(?:answers?|ans|choice|chosen|predicted|guess|decision|option|label|pred(?:iction)?|result|response|output|key"
    r"|letter|selection|selected|solution|correcta?|right|final|verdict|value|pick|marked|gabarito|richtig|lösung|svar)"
)
_KEY = rf"{_FIELD}(?:_(?:answer|option|choice|letter|label|key|id|index))?[\"'] {{0,3}}:"


INTRODUCTION = compile_words(
    rf"(?P<key>{_KEY})|(?P<mark>{MARKER}|####|final{_COLON})|(?P<noun>{_NOUN}{_IS}|{_GOOD}[^\S\n](?:answer|option"
    rf"|choice)(?=[^\S\n]\W{{0,3}}\w{{1,4}}\b)|ans(?: {{0,2}}[:.=]|{_DASH})|{_CHINESE_JAPANESE}|{_KOREAN}"
    rf"|{_FOREIGN_NOUN}(?: (?!(?:no|{NOT})\b)[^ .,:;!?]{{1,12}}){{0,3}}?{_FOREIGN_IS}|{_BARE_NOUN})"
    rf"|(?P<labelled>{_FIELD}{_COLON})|(?P<verb>{_VERB})|(?P<foreign_verb>{_FOREIGN_VERB})|(?P<left>{_LEFT})"
    rf"|(?P<denied>{NOT}(?= )(?! (?:only|just|merely|simply|alone|necessarily|nur|solo|sólo|только)\b))"
    rf"|(?P<contrast>(?:but|sino|sondern|mais)\b|而是)|(?P<correcting>{_CORRECTING})|(?P<pronoun>{_PRONOUN})"
    rf"|(?P<ellipsis>{_ELLIPSIS})",
)
"""What introduces an answer; the group says how. A label or a text follows, after FILLER."""

ANCHOR = compile_words(
    rf"{MARKER}|####|[-=]>|(?:\b|(?<=_))"
    + any_of(
        r"ans opt cho sol sel resp con lett pick guess verd deci corr right best true prop appr accu suit like fin "
        r"key outp resu pred labe mark gaba rich ant lös svar risp rép odp cev yan jaw opç alte đáp отв вар від απά "
        r"say take thin beli go went vote sett stic el esco wäh neh sce kies wyb seç pili välj выб верн прав chọn "
        r"it['\s] that['\s] this_ whic c' es_ è_ so\b thus ther henc defi prob clea cert obvi sure also donc quin "
        r"logo i_m i_w i_i make scra on_s wait actu no strik canc forg never rath sorr oops edit to_c but sino sond "
        r"mais lean letr vas dir vál răsp das_ ich_ je_ quer quis vole inte я_ ik_ val leav last one_ rema il_ ne_ "
        r"übri blei qued rima rest ост blij còn not nich nie не corre korr"
    )
    + r"|[答正回选選→⇒∴只剩残]|정답|답|उत्तर|जवाब|คำตอบ|ال|پاسخ|ה?תשובה|所以|因此|而是|남",
)
"""Where an INTRODUCTION may begin: looking there takes half of the time that trying every place would."""


# What declares options the answer, behind them.
_STOP = r"(?= {0,2}(?:[.,;:!]|$|\n)| (?:because|since|as)\b)"
_END = (
    r"(?= {0,2}(?:[.,;:!?)*_\"'。、—–]|- |\([^()]|$|\n)| (?:because|since|as|for|here|to|and|but|while|given|among"
    r"|out of|of the|based|in this)\b)"
)
_MUST = rf"(?:{_BE}|(?:seem|appear|look)s?(?: to be)?)"
_REJECTED = (
    rf"(?:{_MUST}|can|could) (?:(?:{SURELY}|{SO}|both|all) ){{0,2}}(?:not(?! (?:all|both)\b)|incorrect|wrong|false"
    r"|never|out|(?:eliminat|exclud|dismiss|discard)ed|ruled out)\b|(?:(?:is|are|was|could|ca)n't|cannot)\b"
    r"|(?:do|does|did)(?: not|n't) (?:fit|match|work|apply|satisfy|qualify|describe|meet|hold|answer|make sense|belong"
    rf"|correspond)\b|{_COPULA} {WRONG}|неверн|(?:scheide[tn]|passt nicht|n'est|ne|no (?:es|son)|non (?:è|sono|può)"
    r"|não (?:é|são))\b"
)
_BEST = (
    rf"(?:both |all )?{_MUST} {{1,3}}(?:(?:{SURELY}|{SO}|the|both|all|only|most|my|final|more|odd|one|option|choice)"
    r" {1,2}){0,3}(?:correct|right|best|better|true|answers?|choices?|appropriate|accurate|exception|outlier|left"
    r"|remaining|(?:one|man) out|it|one|(?:(?<=more )|(?<=most ))(?:likely|plausible|suitable)|all that (?:is left"
    r"|remains)|(?<= the )(?:[a-z]+est|most [a-z]+)(?= (?:of|among)\b))(?: (?:correct )?(?:answer|option|choice|one"
    r"|response|pick|fit)s?|(?:(?<= the best)|(?<= most likely)) [a-z]{3,12}(?: [a-z]{4,12})?)?"
)
_FITS = (
    r"(?:alone )?(?:remains?|do|does|holds?|works?|appl(?:y|ies)|satisf(?:y|ies)|(?:fits?|match(?:es)?)(?: (?:the|this"
    r"|all) \w{3,12})?)|bleibt|reste|queda|rimane|остаётся|richtig|korrekt|stimmt|trifft zu|(?:— |являет?ся )?"
    rf"(?:верн|правильн)\w{{1,4}}(?: (?:ответ|вариант)\w{{0,2}})?|{_COPULA} (?:(?:la|le|the|die|das|het|a|de) )?"
    rf"(?:{_REPLY} )?{RIGHT}(?: {_REPLY})?"
)
_CHOSEN = (
    r"(?:it is|is what (?:i|we)(?: would|'d)? (?:choose|pick|select|say|go with)|(?:would )?(?:fits?|match(?:es)?)"
    r" (?:the )?best|makes? (?:the )?(?:most|best) sense|(?:as )?(?:the|my|our) (?:(?:only|final|most) )?(?:(?:correct"
    r"|right|best|likely) )?(?:answer|option|choice))"
)
_VERDICT = compile_words(rf" (?:(?P<denied>{_REJECTED})|{_CHOSEN}{_STOP}|(?:{_BEST}|{_FITS}){_END})")
_UNSPACED_VERDICT = compile_words(
    r"(?:[两兩二三四]?[个個项項]?(?:[选選]?[项項])?)?[都均]?[是为]?最?(?:正[确確]|[对對])的?(?:答案"
    rf"|[选選][项項])?{_END}|(?:[选選]?[项項])?[是为]答案{_END}|(?:だけ)? ?[がは](?:正解|正しい|残)|を[选選]"
    r"| ?[가이] ?(?:정답|맞)|[를을] ?(?:선택|고르)|(?P<denied> ?(?:[选選][项項])?[都均]?[是被]?(?:不正确|不[对對]|不是"
    r"|不符|[错錯]|排除)| ?[はが](?:間違|違))"
)
_UNSPACED_BEGIN = re.compile(r"\s?[两兩二三四个個项項选選都均是为最正对對だがはを가이를을被不错錯排]")


def find_verdicts(text: str) -> Iterator[re.Match[str]]:
    """Yield what declares the options before it the answer ("B is correct"), or wrong: a group "denied"."""
    yield from _VERDICT.finditer(text)
    end = 0
    for begin in () if text.isascii() else _UNSPACED_BEGIN.finditer(text):
        verdict = _UNSPACED_VERDICT.match(text, begin.start()) if begin.start() >= end else None
        if verdict:
            yield verdict
            end = verdict.end()

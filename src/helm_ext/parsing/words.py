"""The words of some twenty languages around an answer, by the part that they play in a clause.

All patterns meet text as `marks.Marks` spells it: in lower case, without accents and markup, options as symbols. In
them a space is any white space. Every repetition is bounded, so that matching is linear in the text.
"""

from __future__ import annotations

import re
import unicodedata

from helm_ext.parsing.options import ACCENTS, MARKER, TICKS

LABEL = "[\U000f0000-\U000f0fff\U000f3000-\U000f3fff]"
"""An option by its label."""
TEXT = "[\U000f1000-\U000f1fff\U000f4000-\U000f4fff]"
"""An option by its text."""
SYMBOL = "[\U000f0000-\U000f4fff]"
"""Any option, or one that is unclear (U+F2000)."""
_NOT_LOOSE = "[\U000f0000-\U000f3fff]"
"""Any but a text in the middle of a clause."""


def compile_words(pattern: str) -> re.Pattern[str]:
    """Compile a pattern in the form in which it meets the text: a Thai vowel is two characters there, é is e."""
    return re.compile(unicodedata.normalize("NFKC", pattern).translate(ACCENTS).replace(" ", r"\s"))


def any_of(words: str) -> str:
    """Return a pattern of any of some words; `_` is a space. Those of one letter stand together, which is faster."""
    by_letter: dict[str, list[str]] = {}
    for word in dict.fromkeys(words.translate(ACCENTS).split()):
        by_letter.setdefault(word[0], []).append(word[1:].replace("_", " "))
    return "(?:" + "|".join(f"{letter}(?:{'|'.join(rests)})" for letter, rests in by_letter.items()) + ")"


# ---- Parts that words play, in all languages

NO = r"(?:not|never|nicht|niet|pas|non|não|nie|не)"
SO = any_of("so thus therefore hence finally accordingly consequently donc quindi logo somit also daher значит")
SURELY = any_of("indeed definitely certainly clearly surely obviously probably likely also")
_TO_BE = any_of("must should would will ought_to has_to have_to had_to can_only")
_IS = rf"(?:is|are|was|were|{_TO_BE}(?: \w{{1,10}}ly)? be)"
_SEEMS = rf"(?:{_IS}|(?:seem|appear|look)s?(?: to be)?)"
COPULA = any_of(
    "es son é são è sono está estão est sont ist sind lautet är is zijn e' je este on to adalah là είναι هي это "
    "является "
    "היא הוא"
)
REPLY = any_of(
    r"respuestas? respostas? risposte? rispost[ae] réponses? antwort(?:en)? antwoord svar(?:et)? opci[óo]n(?:es)? "
    r"opç\w{1,3} opzion[ei] alternativas? letras? lett(?:re|era) ответ\w{0,2} вариант\w{0,2} lösung odpowied[źz]i? "
    r"cevap(?:lar)? yanıt jawaban(?:nya)? correc?ta richtige? korrekte? odpověď vastaus válasz răspuns(?:ul)? đáp_án "
    "відповідь απάντηση उत्तर जवाब คำตอบ الإجابة الجواب پاسخ תשובה התשובה gabarito"
)
_ANSWER = any_of("answers? ans option choice solution selection response conclusion letter pick guess verdict decision")
_GOOD = any_of("correct right best true proper appropriate accurate suitable likely final better")
_RIGHTS = any_of(
    r"right true yes valid best answer richtig\w{0,2} korrekt\w{0,2} juist\w? rätt wahr ja corr(?:ect|ett?)[oae]?s? "
    r"verdader[oa] sí sim cert[oa] ver[oa] giust[oa] vrai juste bonne exacte? oui верн\w{1,2} правильн\w{1,2} да"
)
RIGHT = rf"(?:{_RIGHTS}\b|正确|正確|对|對|正解|正しい|맞|정답)"
_WRONGS = any_of(
    r"incorr(?:ect|ett?)[oae]?s? wrong false invalid untrue eliminated falsch nein fals[oa]s? errad[oa]s? sbagliat\w "
    r"faux fausse?s? неверн\w{1,2} неправильн\w{1,2} нет no not never nicht niet pas non não nie не"
)
WRONG = rf"(?:{_WRONGS}\b|错|錯|不正|不对|不對|誤|間違|不正解|틀|오답)"
_THINK = any_of(
    "think believe assume guess say argue suspect suppose expect claim said claimed thought chose picked choose pick "
    "select answer"
)
_CHOOSE = any_of(
    r"choos(?:e|ing) chosen? pick(?:ed|ing)? select(?:ed|ing)? go(?:ing)?_(?:with|for) went_(?:with"
    r"|for) mark take say "
    "opt(?:ing)?_for vote_for settle_on stick_with bet_on"
)
_BELIEVE = any_of("guess think believe answer suggest recommend lean(?:ing)?_towards?")
_CHOOSE_ABROAD = any_of(
    r"el(?:i[gj]|egi)\w{1,4} esco[jl]\w{1,4} choisi\w{1,4} wähle nehme tippe(?:_auf)? выбираю scelgo kies wybieram "
    "seçiyorum chọn dir(?:ais|ía|ia) pilih väljer"
)
_SORRIES = any_of(
    r"sorry oops whoops apolog\w{1,4} pardon forgive_me my_bad my_mistake my_error typo perd[oóã]n?\w{0,4} "
    r"disculp\w{1,4} "
    r"lo_siento me_equivoqu[eé] desculp\w{1,4} me_enganei errei scus[ai]\w{0,3} mi_sono_sbagliat[oa] désolée? "
    r"excuse[zrs]?(?:[\s-](?:moi|me))? je_me_suis_tromp\w{1,3} entschuldig\w{1,6} verzeih\w{1,4} tut_mir_leid geirrt "
    r"извини\w{0,3} прости ошиб\w{1,4} вибач\w{1,4} przepraszam özür عذر\w{1,2} माफ\w{0,3}"
)
_SORRY = rf"(?:\b{_SORRIES}\b|抱歉|对不起|不好意思|说错|すみません|間違え|죄송|ขอโทษ)"
_BACK = any_of(
    "scratch_that strike_that cancel_that forget_that never_mind correction corrección correção correzione "
    "korrektur wait "
    "actually edit"
)
_OPTION = rf"(?:(?:la|el|a|die|das|the|de|het|l'|las|as|les|le|los|gli) )?{REPLY}"
_LIGHTS = any_of(
    "then most_likely simply actually rather plutôt eher of_course in_fact instead now just only either both "
    "options? "
    "choice answers? ans statement letters? number label the that to nur dus it_is it's it_must_be it_should_be la "
    "le las "
    "les el los die der das den est ist"
)
_LIGHT = (
    rf"(?:{SO}|{SURELY}|{_LIGHTS}|i(?:'d| would| will)? (?:think|believe|guess|say|choose|pick|go with)|{_OPTION})\b"
    r"|100 ?%(?= )(?: sure)?|[选選](?:[项項]|择|擇)"
)

# ---- Before an option

_FILLER = rf"(?:[ :,({{\[]{{0,6}}(?:{_LIGHT})){{0,5}}[ ,:({{\[、]{{0,4}}"
"""Between an introduction and an option. May be empty."""
LEAD = compile_words(
    rf"[ >•#~{TICKS}{MARKER}({{\[]{{0,8}}(?:- )?(?:\(?\d{{1,2}}[.):] )?(?:(?:{_LIGHT}|ok|sure|è(?= {SYMBOL})"
    rf"|q(?:uestion)? ?\d{{1,3}}(?= ?[:.)])"
    r"|as (?:\w{1,7} ){0,3}(?:\w{4,12}ed|shown|seen|said)(?: (?:above|before|earlier|already|below)){0,2}(?=,))"
    r"[ ,:.)]{0,4}(?:- )?){0,3}"
)
"""Before an option at the beginning of a line or a clause. May be empty."""

_COLON = r"(?:'? {0,2}(?:[:=→⇒|]|[-=]>)|\((?='))"
_DASH = r" [-–—](?= )"
_LINK = rf"(?:(?:'s| {{1,3}}{_IS})\b|{_COLON}|{_DASH}|[\]】] {{0,2}}| {{0,2}}\n)"
_FIELD = any_of(
    "answers? ans choice chosen predicted guess decision option label pred(?:iction)? result response output key "
    "letter "
    "selection selected solution correcta? right verdict value pick marked gabarito richtig lösung svar"
)
_NOUN = (
    rf"(?:{_GOOD} (?:ones?|options?|choices?|letters?|statements?|picks?)"
    rf"|{_ANSWER})\b(?: {{1,3}}[\w']{{1,12}}){{0,5}}?"
)
_NOUN_ABROAD = (
    rf"{REPLY}(?: (?!(?:no|{NO})\b)[^ .,:;!?]{{1,12}}){{0,3}}?(?: {COPULA}\b| {{0,2}}[:=—–]| -(?= )| ?คือ)"
    r"|(?:верн|правильн)\w{1,3} (?:вариант|ответ)\w{0,2}|cevap(?:lar)?|yanıt|उत्तर|ответ|вариант|đáp án"
)
_PRONOUN = rf"(?:(?:it|that|this|which)(?:'s| {_IS})|c'est|(?:es|das) ist)\b|(?:es|è) (?=l[ae]\b)"
_LEFT = (
    r"\b(?:leav(?:es?|ing)(?: us)?(?: with)?|left with|(?:only|last|one) (?:one|option|choice|answer|candidate)"
    r" (?:left|remaining|standing|that (?:remains|is left))(?: (?:is|being))?|remain(?:s|ing)(?: (?:option|choice"
    r"|one|answer"
    rf"|candidate))?(?: is|,|{_COLON})?|ne reste(?: donc)? que|il reste|(?:übrig )?bleibt|queda|rimane|resta|остаётся"
    r"|blijft|còn lại(?: là)?)\b|只?剩下?的?(?:是|为|就是)?|残るのは|남는?"
)
_CORRECTING = (
    r"(?:i (?:meant?|wanted|intended)(?: to (?:say|write|answer|put|choose|pick|type))?|ich meinte|je voulais dire"
    r"|ik bedoelde|quer[ií]a decir|volevo dire|intendevo|quis dizer|я имела? в виду|я хотела? сказать|make (?:it"
    r"|that)"
    rf"|{_BACK}|on second thought|no(?!(?<=[>→=:|] no)[.,;]? ?\n)|nope|rather|sorry|oops|to change my answer to)\b"
    r"(?:[,:;.!…–—-]{0,3} {1,2}(?:no|wait|sorry|actually|rather|i meant?)\b){0,3}[,:;.!…–—-]{0,3} {0,2}(?:[éè] )?"
)
_ASIAN = (
    r"(?:答案|正解|答え|回答|正[确確](?:[选選][项項])?的?|[选選][项項]|答)[】\]]?[应應]?[该該]?就?(?:[是为选選はが]:?"
    r"| {0,2}:|(?<=[】\]]))|(?:[选選][择擇]?):?|正しくは|(?:정답|답)(?:은|는| ?:)"
)
INTRODUCTION = compile_words(
    rf"(?:(?P<mark>{MARKER}|####|\bfinal(?: {_ANSWER})?(?: \w{{1,12}}){{0,3}}?{_LINK}|\bfinal {_ANSWER}\b)"
    rf"|\b(?P<noun>{_NOUN}{_LINK}|{_GOOD} (?:answer|option|choice)\b|{_NOUN_ABROAD})|(?P<asian>{_ASIAN})"
    rf"|\b(?:(?P<labelled>{_FIELD}{_COLON})|(?P<choose>{_CHOOSE}\b)|(?P<believe>{_BELIEVE}\b)"
    rf"|(?P<abroad>{_CHOOSE_ABROAD}\b)"
    rf"|(?P<correcting>{_CORRECTING})|(?P<pronoun>{_PRONOUN}))|(?P<left>{_LEFT})|(?P<contrast>\b(?:but|sino"
    rf"|sondern|mais)\b"
    rf"|而是)|(?P<ellipsis>\b(?:{SO}|{SURELY})\b|[-=]>|→|⇒|∴|所以|因此|よって)){_FILLER}\Z"
)
"""What introduces an option, up to it; the group says how."""
SUBJECT = compile_words(
    r"(?:\b(?:(?:i|we)(?:'(?:d|ll|m|re|ve)| am| are)?|(?P<let>let(?:'s| us| me))) {1,2}(?:(?:would|will|shall|must"
    r"|have to"
    rf"|{SO}|then|now|still|going to) {{1,2}}){{0,2}}|我|私は)\Z"
)
"""Before a verb that introduces an answer: who chooses."""
_CLAUSE = (
    rf"(?:[:,;.…、，(\[{{—–>{MARKER}-] {{0,2}}|\b(?:{SO}|\w{{1,10}}ly|"
    + any_of(
        "that then think believe guess say sure because bet is instead rather sorry oops options? choices? "
        "answers? only both "
        "statements? but and while however mean meant wait no reflection thought makes? leaves? leaving with us "
        "que che dass "
        "что most very quite almost nur las los die the"
    )
    + r") |选项|選項|所以|因此|我|私は|は)"
)
CLAUSE = compile_words(rf"{SYMBOL}[.:)]? |{_CLAUSE}")
"""Where a clause may begin."""
CLAUSE_START = compile_words(rf"(?:^|{_CLAUSE}) {{0,2}}'?\Z")
SENTENCE_END = re.compile(r"[.!?;\n。！？；](?:(?<![.!?])|(?=[\s')]|$))")
"""What ends a sentence; the point in "3.5" does not."""
ENDED = re.compile(r"(?: [^\W\d_]{2,14})?\W{0,3}(?:[.!;](?=\s|$)|$|\n)")
"""After an option: nothing more of its sentence, but for what is counted ("18 apples")."""

_OTHER_ANSWER = any_of(
    "previous prior preceding other another earlier former old initial original first alternative second(?!_thought) "
    "second-best next runner-up worst wrong incorrect false bad poor opposite common popular tempting plausible "
    "frequent typical invalid excluded rejected your his her their students?'s? anterior"
)
_VOID = any_of(
    "if whether unless suppose supposing assume assuming not isn't least_likely no don't doesn't didn't wouldn't "
    "won't can't couldn't cannot never neither doubtful deny disagree unlikely impossible improbable false untrue "
    "hardly tempting tempted seem unsure unclear may_be might_be could_be assumed nicht pas не"
)
VOID = compile_words(
    rf"(?:\b(?:{_VOID}|(?<!\bsecond )thought|(?<!\bno )(?<!\bnot )(?<!n't )(?<!\bwithout )(?<!\bwithout a )doubts?"
    r"|(?:you|one|some|nobody|none|many|most|people|others|they|someone|anyone|he|she|m(?<!\bi m)(?<!\bwe m)(?:ight"
    rf"|ay))(?:[^\S\n]\w{{1,12}}){{0,2}}[^\S\n]{_THINK}|\w{{3,20}}s(?:[^\S\n](?:might|may|would"
    rf"|often))?[^\S\n]{_THINK}"
    r"|(?:thinks|believes|says|claims|argues|(?<!\bi )(?<!\bwe )(?:said|claimed)))"
    r"(?:[^\S\n]{1,2}['(\[]{0,4}(?:that|the|my|your|our|correct|right|best|final|be|to|sure|certain|true|case"
    rf"|convinced|seem|it|option|choice|answer|{_THINK})){{0,5}}"
    r"|(?<!\bit)(?<!\bthat)(?<!\bhere)(?<!\blet)(?<!\bthere)'s(?:[^\S\n]\w{1,12})?"
    rf"|\b{_OTHER_ANSWER}(?:[^\S\n][\w-]{{1,12}}){{0,2}}|[不没](?:能|该|会)?|[错錯][误誤]的?)[^\S\n]{{0,2}}\Z"
)
"""Before an introduction: it introduces no answer ("if the answer is", "some say it is", "the other option is")."""
DENIED = compile_words(
    rf"\b(?:{NO}|nor|no es|(?:unlike|rather than|instead of)(?: [^.,;:]{{1,30}} (?:and|or))?)"
    r"(?: (?:option|choice|answer|letter))? {0,2}\W?\Z|不是?\Z"
)
"""Before an option: it alone is denied."""
DENIAL = compile_words(
    rf"(?:{NO}|\bno\b|不)(?= )?(?! (?:only|just|merely|simply|alone|necessarily|nur|solo|sólo|только)\b){_FILLER}\Z"
)
"""Before options: it denies them all."""
HYPOTHESIS = compile_words(
    r"\b(?:if(?! (?:i|we) (?:had|have|must|need)\b| forced\b)|unless|suppose|supposing|assuming|otherwise|whereas"
    r"|at first|initially|(?:in|under) (?:(?:a|an|any) )?(?:different|other|opposite)|(?:next|previous|other|another"
    r"|following) (?:question|problem|exercise|case))\b|^\W{0,4}(?:had|were|should|si|se|wenn|falls|in (?:the"
    r"|that) case)\b|如果|만약"
)
"""In a sentence before a statement: what is said holds only then."""
MODAL = re.compile(r"\b(?:would|could|might)\b")
RETURN = compile_words(r"\b(?:but|however|yet|now|actually)\b")
"""Behind a HYPOTHESIS in its sentence: what follows holds again."""
CONCLUSION = compile_words(
    rf"\b(?:{SO}|(?:which|this|that) means|conclude|conclusion|overall)\b|所以|因此|故|综上|よって"
)
"""In a sentence before a statement: it ends a chain of thought, and weighs more than what was said on the way."""
APOLOGY = compile_words(_SORRY)
"""What asks pardon for an answer that was wrong; the right one follows in the sentence."""
CORRECTION = compile_words(
    _SORRY + rf"|\b(?:{_BACK}|correcting|mistaken?|reconsider|recheck|rethink|re-?examine|second thought"
    r"|on reflection|re-?reading|misread|(?:looking|thinking|check) again|i meant?|i was wrong|was incorrect"
    r"|changed? my|hold on|no(?=,)|update|revised|исправл\w{1,4}|düzeltme)\b|不对|아니"
)
"""Between two statements: the second one corrects the first."""
EARLIER = compile_words(
    r"\b(?:(?<!should have )(?<!should've )(?:said|written)|wrote|first|before|previous\w{0,2}|earlier|instead|rather"
    r"|confus\w{1,3}|mixed|expected|(?<!debería haber )(?<!debí haber )dicho|dit|because)\b"
)
"""Behind an APOLOGY: what follows is what was wrong; not so "I should have said"."""
_OTHERS = any_of(
    "next previous prior last earlier another other following preceding subsequent second older? practice mock "
    "sample "
    "trial similar related midterm"
)
_OCCASION = any_of(
    "questions? problems? exercises? exams? tests? quiz papers? puzzles? tasks? items? cases? versions? editions? "
    "examples? "
    "sections? chapters? rounds? riddles? statements? claims? sentences? passages?"
)
_OTHERS_ABROAD = any_of(
    r"derni[eè]re suivante précédente autre letzte[sn]? vorige anterior siguiente otr[oa] successiva próxima "
    r"прошл\w{2,3} "
    r"следующ\w{2,3} предыдущ\w{2,3} друго\w{1,2}"
)
_TIME = r"(?:question|année|frage|jahr|mal|pregunta|pergunta|examen|exame|domanda|год\w?|вопрос\w{0,2})"
ELSEWHERE = compile_words(
    rf"\b(?:{_OTHERS}(?: [\w']{{1,12}})? {_OCCASION}\b|(?:last|previous|next) (?:year|time|week|month|term|semester)"
    r"|back in |in (?:1[5-9]|20)\d\d,? |years? ago\b|yesterday\b|used to\b|(?:in|for|to|on|of) (?:question|problem"
    rf"|exercise|number|no\.|part|item|task) ?#?\d{{1,3}}\b|{_OTHERS_ABROAD} {_TIME}\b|{_TIME} {_OTHERS_ABROAD}\b)"
    r"|[上下其][一他]?题|이전 문제"
)
"""In a sentence: what is said in it is about another question, exam or year."""
_DENYING = (
    rf"\b(?:{WRONG}|neither|nor|weder|ni|(?:all|any\w*|every\w*) (?:but|except)|cannot|\w{{2,6}}n't|no longer"
    rf"|unlikely"
    r"|hardly)\b|不|没"
)
_ELIMINATING = r"\b(?:rul|eliminat|exclud|discard|dismiss)\w{0,4}\b|排除"
ELIMINATING = compile_words(rf"(?!\brul(?![^.]{{0,60}} out\b))(?:{_ELIMINATING})(?! (?:out )?(?:every|all ))")
"""In a sentence: options are taken out, but not "everything else"."""
DENYING = compile_words(rf"{_DENYING}|{_ELIMINATING}|\b(?:out|too [a-z]{{3,12}})\b")
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
_LINKS = any_of(
    "is are was were equals should must be by as called towards? with only that like suggest recommend rispondo "
    "este je on "
    "es est ist é è är heißt"
)
PREDICATE = compile_words(
    rf"(?:(?:\b{_LINKS}|(?<=\w)'s(?= ))|是|は|은|는|(?<!options)(?<!choices):(?= )"
    r"|^[^ ,:.]{1,12}(?: [^ ,:.]{1,12}){0,5},(?= )) {0,3}(?:(?:that|to|called|named|known as) {1,2}){0,3}\Z"
)
"""Before an option that a sentence ends in: "The capital of France is Paris."."""

# ---- Behind an option

_EITHER = any_of("or maybe perhaps possibly versus vs oder ou или ya_da eller hoặc")
EITHER = compile_words(rf"\b{_EITHER}\b|(?<= )o(?= )|或|또는")
"""Between options: one of them is meant, not all."""
_JOINT = (
    rf"(?:(?:{_EITHER}|and|und|et|also|as well as|en|och|og|ve|dan|và|y|e|и|і|i|a|o)(?= )|或者?|또는"
    rf"|[和与與及跟と]|와"
    r"|하고)"
)
CONNECTIVE = (
    rf"(?:\.? {{0,3}}\(?(?:[,;/|&+、~] {{0,3}}(?:{_JOINT} {{0,3}}){{0,2}}|(?:{_JOINT} {{0,3}}){{1,2}})"
    r"(?:(?:also|maybe|perhaps|arguably|both|options?|choice|answer) {1,3}){0,2}(?:(?:the|an?|la|le|el|die|der"
    r"|das) )?)"
)
"""Between options that are named together."""
_MARK_ONLY = r"(?:(?<=[,;/|&+、~])|(?<=[,;/|&+、~] ))"
_PLURAL = rf"(?:{CONNECTIVE}{SYMBOL}){{0,9}} (?:are|sind|sont|son|sono|zijn|sao)\b"
_NEXT_LINE = (
    rf"(?:[,;]?|(?:(?<=(?m:^){SYMBOL})|(?<=(?m:^)- {SYMBOL}))\.)[^\S\n]{{0,3}}\n {{0,4}}(?:- |• |\d{{1,2}}[.)] )?"
    rf"(?=(?:{SYMBOL}[.,;]?[^\S\n]{{0,3}}){{1,9}}(?:\n|\Z))"
)
GROUP = compile_words(
    rf"{SYMBOL}(?:(?:{CONNECTIVE}(?:{_MARK_ONLY}(?={_NOT_LOOSE}|{SYMBOL}{_PLURAL})|(?!{_MARK_ONLY}))|{_NEXT_LINE})"
    rf"{SYMBOL}){{0,63}}"
)
"""Options that are named together."""
STRANGER = compile_words(
    rf"{CONNECTIVE}['(\[]{{0,3}}(?:[a-z]|\d{{1,3}})(?!\w)[')\]]{{0,3}} {{0,2}}[.,;]? {{0,2}}(?:\Z|\n)|、(?=\w)"
)
"""After an option: what looks like a label and is none of the question's."""

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
    rf"| ?> {{0,2}}(?:[✅✔✓☑]|{RIGHT})"
)
"""After a label or a text that nothing else sets off: prose that may follow an answer. The same for every label."""
UNIT = compile_words(
    r" (?!(?:hundred|thousand|million|billion|trillion|dozen|percent|times|or|and|to|more|less|plus|minus|by|of|in"
    r"|out"
    r"|is|are|was)\b)[^\W\d_]{2,14}(?= ?[.,;!)]| ?$|\n| (?:are|is|were|left|remain|in (?:total|all))\b)"
)
"""After an option's text that ends in a number: what is counted ("18 apples")."""
APPOSITION = compile_words(
    rf",? {{0,2}}(?:for one|too|myself|personally|as (?:an?|your) {_NO_EXAMPLE}|on the other hand|therefore|however"
    rf"|like)\b"
)
"""After a label and a comma: the word before was the subject of a sentence ("I, for one, ...")."""
SUFFIX = compile_words(
    r"(?:'[dt][iı]r\b|(?:选项|選項|项|番|번)?(?:吧|了|です|[にと]なります|だと思います|だ|입니다|이다)?)"
)
"""What may be written together with a label. May be empty."""
_ABOUT = (
    rf"(?:[❌✗✘✖❎×☒]|(?:[=→]|[-=]>) {{0,2}}(?:[❌✗✘✖❎×☒✅✔✓☑]|{RIGHT}|{WRONG})|> {{0,2}}(?:[❌✗✘✖❎×☒]|{WRONG})"
    r"|(?:(?:is|are|does)(?:n't)?|means|refers|says|states|suggests|seems|incorrect|wrong"
    r"|eliminated|not (?:correct|right|true)|false)\b)"
)
ABOUT = compile_words(rf" {{0,2}}{_ABOUT}")
"""After a label: a sentence *about* the option."""
OBJECTION = compile_words(rf"[ :;,–—-]{{0,6}}(?:{_ABOUT}|(?:was|were|can(?:'t|not)?|could|may|might|would|has)\b)")
"""After an option at the start of a completion: the same, and no answer."""

_STOP = r"(?= {0,2}(?:[.,;:!]|\Z|\n)| (?:because|since|as)\b)"
_END = (
    r"(?= {0,2}(?:[.,;:!?)'。、—–]|- |\([^()]|\Z|\n)| (?:because|since|as|for|here|to|and|but|while|given|among"
    r"|out of|of the|based|in this)\b)"
)
_REJECTED = (
    rf"(?:{_SEEMS}|c(?:an|ould)(?: be)?) (?:(?:{SURELY}|{SO}|both|all) ){{0,2}}(?:not(?! (?:all|both)\b)|incorrect"
    rf"|wrong"
    r"|false|never|out|(?:eliminat|exclud|dismiss|discard)ed|ruled out)\b|(?:(?:is|are|was|could|ca)n't|cannot)\b"
    r"|(?:do|does|did)(?: not|n't) (?:fit|match|work|apply|satisfy|qualify|describe|meet|hold|answer|make sense"
    r"|belong"
    rf"|correspond)\b|{COPULA} {WRONG}|неверн|(?:scheide[tn]|passt nicht|n'est|ne|no (?:es|son)|non (?:è|sono|può)"
    r"|não (?:é|são))\b"
)
_BEST = (
    rf"(?:both |all )?{_SEEMS} {{1,3}}(?:(?:{SURELY}|{SO}|the|both|all|only|most|my|final|more|odd|one|option|choice)"
    r" {1,2}){0,3}(?:correct|right|best|better|true|answers?|choices?|appropriate|accurate|exception|outlier|left"
    r"|remaining|(?:one|man) out|it|one|(?:(?<=more )|(?<=most ))(?:likely|plausible|suitable)|all that (?:is left"
    r"|remains)|(?<= the )(?:[a-z]+est|most [a-z]+)(?= (?:of|among)\b))(?: (?:correct )?(?:answer|option|choice|one"
    r"|response|pick|fit)s?|(?:(?<= the best)|(?<= most likely)) [a-z]{3,12}(?: [a-z]{4,12})?)?"
)
_FITS = (
    r"(?:alone )?(?:remains?|do|does|holds?|works?|appl(?:y|ies)|satisf(?:y|ies)|(?:fits?|match(?:es)?)(?: (?:the"
    r"|this"
    r"|all) \w{3,12})?)|bleibt|reste|queda|rimane|остаётся|richtig|korrekt|stimmt|trifft zu|(?:— |являет?ся )?"
    rf"(?:верн|правильн)\w{{1,4}}(?: (?:ответ|вариант)\w{{0,2}})?|{COPULA} (?:(?:la|le|the|die|das|het|a|de) )?"
    rf"(?:{REPLY} )?{RIGHT}(?: {REPLY})?"
)
_CHOSEN = (
    r"(?:it is|is what (?:i|we)(?: would|'d)? (?:choose|pick|select|say|go with)|(?:would )?(?:fits?|match(?:es)?)"
    r" (?:the )?best|makes? (?:the )?(?:most|best) sense|(?:as )?(?:the|my|our) (?:(?:only|final"
    r"|most) )?(?:(?:correct"
    r"|right|best|likely) )?(?:answer|option|choice))"
)
VERDICT = compile_words(
    rf" (?:(?P<denied>{_REJECTED})|{_CHOSEN}{_STOP}|(?:{_BEST}|{_FITS}){_END})"
    r"|(?:[两兩二三四]?[个個项項]?(?:[选選]?[项項])?)?[都均]?[是为]?最?(?:正[确確]|[对對])的?(?:答案"
    rf"|[选選][项項])?{_END}|(?:[选選]?[项項])?[是为]答案{_END}|(?:だけ)? ?[がは](?:正解|正しい|残)|を[选選]"
    r"| ?[가이] ?(?:정답|맞)|[를을] ?(?:선택|고르)|(?P<denied_too> ?(?:[选選][项項])?[都均]?[是被]?(?:不正确|不[对對]"
    r"|不是|不符|[错錯]|排除)| ?[はが](?:間違|違))"
)
"""Behind options: declares them the answer ("B is correct"), or denies them."""

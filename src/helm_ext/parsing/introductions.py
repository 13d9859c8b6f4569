"""What introduces an answer or declares one, as regular expressions: English first, and the plain forms of others.

As in `helm_ext.parsing.phrases`: bounded repetitions, a space is any white space; no pattern knows a label. All meet
text in lower case.
"""

from __future__ import annotations

import re

from helm_ext.parsing.decoration import MARKER
from helm_ext.parsing.phrases import any_of, compile_words

# What introduces an answer. For example: "answer is", "answer:", "option -", "choice for this question would be".
_COLON = r"[\"'*_]{0,3} {0,2}(?:[:=→⇒]|[-=]>)"
_DASH = r" [-–—](?= )"
_BE = r"(?:is|are|was|were|(?:must|should|would|will|(?:has|have) to|would have) be(?:en)?)"
_IS = rf"(?:(?:'s| {{1,3}}{_BE})\b|{_COLON}|{_DASH}|[\]】] {{0,2}}|\*\*[^\S\n]{{1,2}})"
_GOOD = r"(?:correct|right|best|true|proper|appropriate|accurate|suitable|likely|final)"
_NOUN = (
    rf"(?:{_GOOD}[^\S\n](?:ones?|options?|choices?|letters?|statements?|picks?)|answers?|option|choice|solution"
    rf"|selection"
    r"|response|conclusion|letter|pick|guess|verdict|decision)(?: {1,3}(?:here|therefore|thus|then|choice|option"
    r"|letter|(?:to|for) (?:this|the|your) (?:question|problem|puzzle)))?"
)
_LABELLED = r"(?:correct|key|output|result|prediction|label|right|final|marked|gabarito|richtig|correcta|lösung|svar)"
_FOREIGN_NOUN = (
    r"(?:respuestas?|respostas?|rispost[ae]|réponses?|antwort(?:en)?|lösung|antwoord|odpowied[źz]i?|cevap(?:lar)?"
    r"|yanıt|jawaban(?:nya)?|svaret|svar|opci[óo]n|opção|alternativa|corre[c]?ta|richtig|odpověď|vastaus|válasz"
    r"|răspuns(?:ul)?|letter[ae]|letra|đáp án|ответ(?:ом)?|вариант|відповідь|απάντηση|उत्तर|जवाब|คำตอบ|الإجابة|الجواب"
    r"|پاسخ|ה?תשובה)"
)
_FOREIGN_IS = (
    r"(?: (?:es|son|é|são|è|sono|e'|está|je|este|on|est|sont|ist|sind|lautet|is|zijn|to|adalah|är|là|είναι|هي|это"
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
    r"(?:elijo|escojo|escolho|choisis|wähle|nehme|выбираю|scelgo|kies|wybieram|seçiyorum|chọn|pilih|väljer)\b"
)
_PRONOUN = rf"(?:(?:it|that|this|which)(?:'s| {_BE}| can only be)\b|c'est\b|(?:es|è) (?=l[ae]\b)|(?:es|das) ist\b)"
_ELLIPSIS = (
    r"(?:(?:so|thus|therefore|hence|definitely|probably|clearly|certainly|obviously|surely|likely|finally|also|donc"
    r"|quindi|logo)\b|[-=]>|→|⇒|∴|所以|因此)"
)
_CORRECTING = (
    r"(?:i (?:meant?|wanted|intended)(?: to (?:say|write|answer|put|choose|pick|type))?|ich meinte|je voulais dire"
    r"|ik bedoelde|quer[ií]a decir|volevo dire|intendevo|quis dizer|я имела? в виду|я хотела? сказать|make (?:it|that)"
    r"|(?:scratch|strike|cancel|forget) that|never mind|correction|corrección|correção|correzione|korrektur"
    r"|on second thought|wait|actually|no|nope|rather|sorry|oops|edit"
    r"|to change my answer to)\b(?:[,:;.!…–—-]{0,3} {1,2}(?:no|wait|sorry|actually|rather"
    r"|i meant?)\b){0,3}[,:;.!…–—-]{0,3} {0,2}"
)
_LEFT = (
    r"(?:leav(?:es|ing)(?: us)?(?: with)?|(?:only|last|one) (?:one|option|choice|answer|candidate) (?:left|remaining"
    r"|standing|that (?:remains|is left))(?: (?:is|being))?"
    rf"|remain(?:s|ing)(?: (?:option|choice|one|answer|candidate))?(?: is|,|{_COLON})?|ne reste(?: donc)? que|il reste"
    r"|(?:übrig )?bleibt|queda|rimane|resta|остаётся|blijft|còn lại(?: là)?)\b|只?剩下?的?(?:是|为|就是)?|残るのは"
    r"|남는?"
)

_KEY = (  # of an answer in JSON and the like, from the word in it that says so
    r"(?:answers?|ans|choice|chosen|predicted|guess|decision|option|label|prediction|pred|result|response|output"
    r"|letter|selection|selected|solution|correct|final|verdict|value|pick)(?:_(?:answer|option|choice|letter|label"
    r"|key|id|index))?[\"'] {0,3}:"
)

INTRODUCTION = compile_words(
    rf"(?P<key>{_KEY})|(?P<mark>{MARKER}|####|final{_COLON})|(?P<noun>{_NOUN}{_IS}|{_GOOD}[^\S\n](?:answer|option"
    rf"|choice)(?=[^\S\n]\W{{0,3}}\w{{1,4}}\b)|ans(?: {{0,2}}[:.=]|{_DASH})|{_CHINESE_JAPANESE}|{_KOREAN}"
    rf"|{_FOREIGN_NOUN}(?: (?!(?:no|nicht|pas|non|nie|не|não|niet)\b)[^ .,:;!?]{{1,12}}){{0,3}}?{_FOREIGN_IS}"
    rf"|{_BARE_NOUN})|(?P<labelled>{_LABELLED}{_COLON})|(?P<verb>{_VERB})|(?P<foreign_verb>{_FOREIGN_VERB})"
    rf"|(?P<left>{_LEFT})|(?P<denied>(?:not|nicht|nie|non|não|не)(?= )(?! (?:only|just|merely|simply|alone|necessarily"
    rf"|nur|solo|sólo|только)\b))|(?P<contrast>(?:but|sino|sondern|mais)\b|而是)|(?P<correcting>{_CORRECTING})"
    rf"|(?P<pronoun>{_PRONOUN})"
    rf"|(?P<ellipsis>{_ELLIPSIS})",
    re.RegexFlag(0),
)
"""What introduces an answer; the group says how. A label or a text follows, after FILLER."""

ANCHOR = compile_words(
    rf"{MARKER}|####|[-=]>|(?:\b|(?<=_))"
    + any_of(
        r"ans opt cho sol sel resp con lett pick guess verd deci corr right best true prop appr accu suit like fin key "
        r"outp resu pred labe mark gaba rich ant lös svar risp rép odp cev yan jaw opç alte đáp отв вар від απά say "
        r"take thin beli go went vote sett stic eli esco wäh neh sce kies wyb seç pili välj выб верн прав chọn it['\s] "
        r"that['\s] this_ whic c' es_ è_ so\b thus ther henc defi prob clea cert obvi sure also donc quin logo i_m i_w "
        r"i_i make scra on_s wait actu no strik canc forg never rath sorr oops edit to_c but sino sond mais lean letr "
        r"vas vál răsp das_ ich_ je_ quer quis vole inte я_ ik_ val leav last one_ rema il_ ne_ übri blei qued rima "
        r"rest ост blij còn not nich nie не corre korr"
    )
    + r"|[答正回选選→⇒∴只剩残]|정답|답|उत्तर|जवाब|คำตอบ|ال|پاسخ|ה?תשובה|所以|因此|而是|남",
    re.RegexFlag(0),
)

"""Where an INTRODUCTION may begin: looking there takes half of the time that trying every place would."""


# What declares options the answer, behind them.
_STOP = r"(?= {0,2}(?:[.,;:!]|$|\n)| (?:because|since|as)\b)"
_END = (
    r"(?= {0,2}(?:[.,;:!?)*_\"'。、—–]|- |\([^()]|$|\n)| (?:because|since|as|for|here|to|and|but|while|given|among"
    r"|out of|of the|based|in this)\b)"
)
_MUST = rf"(?:{_BE}|(?:seem|appear|look)s?(?: to be)?)"
VERDICT = compile_words(
    r" (?:(?:it is|is what (?:i|we)(?: would|'d)? (?:choose|pick|select|say|go with)|(?:would )?fits? (?:the )?best"
    rf"|makes? (?:the )?(?:most|best) sense){_STOP}|(?:both |all )?{_MUST} {{1,3}}(?:(?:clearly|definitely|therefore"
    rf"|thus|the|both|all|only|most|likely|indeed|obviously"
    r"|probably|my|final|also|more) {1,2}){0,3}(?:correct|right|best|better|true|answers?|choices?|appropriate"
    r"|accurate|(?:(?<=more )|(?<=most ))(?:likely|plausible|suitable))"
    rf"(?: (?:correct )?(?:answer|option|choice|one|response|pick|fit)s?)?{_END}|(?:as )?(?:the|my|our) (?:(?:only"
    rf"|final|most) )?(?:(?:correct|right|best|likely) )?(?:answer|option|choice){_STOP}"
    rf"|richtig{_END}"  # "also ist B richtig"
    r"|(?:alone )?(?:remains|is (?:the (?:only )?(?:odd (?:one|man) out|exception|outlier|one|(?:one|option"
    r"|choice) (?:left|remaining))|left|it|all that (?:is left|remains))|are left|remain|does|do|fits?|works?"
    r"|match(?:es)?"
    rf"|appl(?:y|ies)|satisf(?:y|ies)|bleibt|reste|queda|rimane|остаётся){_END}|(?:— |являет?ся )?(?:верн"
    rf"|правильн)\w{{1,4}}(?: (?:ответ|вариант)\w{{0,2}})?{_END}"
    r"|(?:es|son|é|são|è|sono|está|estão|est|sont|ist|sind|är|is|zijn) (?:(?:la|le|the|die|das|het|a"
    r"|de) )?(?:corr\w{2,7}|richtig\w{0,2}|korrekt\w{0,2}|juist\w?|rätt|certa|bonne|giust\w)"
    rf"(?: (?:respuesta|resposta|risposta|réponse|antwort|antwoord|opción|opção|alternativa|svar))?{_END})"
    rf"|(?:[两兩二三四]?[个個项項]?(?:[选選]?[项項])?)?[都均]?[是为]?最?(?:正[确確]|[对對])的?(?:答案"
    rf"|[选選][项項])?{_END}|(?:[选選]?[项項])?[是为]答案{_END}|(?:だけ)? ?[がは](?:正解|正しい|残)|を[选選]"
    rf"| ?[가이] ?(?:정답|맞)|[를을] ?(?:선택|고르)",
    re.RegexFlag(0),
)

"""What declares the options before it the answer: "B is correct", "A and C are right"."""

REJECTION = compile_words(
    rf" (?:(?:{_MUST}|can|could) (?:(?:clearly|definitely|also|therefore|both|all) ){{0,2}}"
    r"(?:not|incorrect|wrong|false|never)\b|(?:isn|aren|wasn|can|couldn)'t\b|cannot\b|(?:do|does|did)(?: not"
    r"|n't) (?:fit|match|work|apply|satisfy|qualify|describe|meet|hold|answer|make sense|belong|correspond)\b|(?:is"
    r"|are|can be|must be|were|was) (?:also )?(?:out|eliminated|excluded|ruled out|dismissed|discarded)\b|(?:ist|sind"
    r"|est|sont|es|son|è|sono|é|são|está|estão) (?:falsch|fausse?s?|faux|fals[oa]s?|sbagliat\w|errad[oa]s?"
    r"|incorr?et\w{1,2}|incorrect\w{0,2})\b|(?:scheide[tn]|passt nicht|n'est|ne|no (?:es|son)|non (?:è|sono|può)"
    r"|não (?:é|são))\b|неверн)"
    r"| ?(?:[选選][项項])?[都均]?[是被]?(?:不正确|不[对對]|不是|不符|[错錯]|排除)| ?[はが](?:間違|違)",
    re.RegexFlag(0),
)

"""What declares the options before it wrong: "A is not correct"."""

//! Words that make a sentence and never decide what a question is about.

/// What a word does in a question.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WordRole {
    #[default]
    Content,
    /// Questions contain it whatever they are about.
    Weak,
    /// Not searched for in questions.
    Stop,
}

/// The roles of the words of a query, in lower case. English stop words always are; those of another language are if
/// the query has at least two of them.
pub fn roles(words: &[&str]) -> Vec<WordRole> {
    let words = without_signs(words);
    let others = other_languages(&words);
    let role = |word: &&str| match word {
        word if is_english(word) || others.iter().any(|list| has(list, word)) => WordRole::Stop,
        word if has(WEAK, word) => WordRole::Weak,
        _ => WordRole::Content,
    };
    words.iter().map(role).collect()
}

/// Whether a query has at least two stop words of a language other than English.
pub fn is_in_another_language(words: &[&str]) -> bool {
    !other_languages(&without_signs(words)).is_empty()
}

fn without_signs<'w>(words: &[&'w str]) -> Vec<&'w str> {
    words.iter().map(|word| word.trim_matches(|letter: char| !letter.is_alphanumeric())).collect()
}

fn other_languages(words: &[&str]) -> Vec<&'static str> {
    let is_of = |list: &str| words.iter().filter(|word| has(list, word) && !is_english(word)).count() > 1;
    OTHERS.iter().copied().filter(|list| is_of(list)).collect()
}

fn has(list: &str, word: &str) -> bool {
    !word.is_empty() && list.split_ascii_whitespace().any(|stop| stop == word)
}

fn is_english(word: &str) -> bool {
    let bare = word.split(['\'', '\u{2019}']).next().unwrap_or(word);
    has(ENGLISH, bare) && word.chars().count() <= bare.chars().count() + 3
}

const ENGLISH: &str = "a about again all also am an and any anything are aren as at be because been being but by can \
    cannot could couldn d did didn do does doesn doing don for from had has hasn have haven having he her here hers \
    herself him himself his how i if im in into is isn it its itself just ll m me mine my myself nor not of on or our \
    ours ourselves please re s shall she should shouldn so some something such t than that the their theirs them \
    themselves then there these they this those to too us ve very was wasn we were weren what when where whether which \
    who whom whose why will with won would wouldn you your yours yourself";

const WEAK: &str = "ask asked come did discuss discussed every find found get gets getting give go going got happen \
    happened happens keep kind know last let like long made make makes many mention mentioned much need needed new now \
    one ones other out said say sort talk talked tell thing things time told type up use used using want wanted way \
    ways went";

const OTHERS: [&str; 8] = [
    // German
    "aber als am an auch auf aus bei bin bis das dass dein dem den der des die dies diese dir doch du ein eine einem \
     einen einer er es für gab habe haben hat hatte hatten ich ihr im in ist ja kann kein können man mein mich mir mit \
     nach nicht noch nur ob oder sein sich sie sind so über um und uns unser unsere unseren von war waren warum was \
     welche welchem welchen welcher welches wenn wer werden wie wir wird wo wurde wurden zu zum zur",
    // French
    "à au aux avec avait avons ce ces cette comment dans de des du elle en est et était être fait il ils j je l la le \
     les leur lui ma mais me mes moi mon ne nos notre nous on ont ou où par pas pour pourquoi qu quand que quel quelle \
     quelles quels qui sa se ses si son sont sur ta te tu un une vos votre vous",
    // Spanish
    "a al como cómo con cuál cuáles cuando cuándo de del donde dónde el ella en era es esa ese esta está este fue ha \
     había han hay hemos la las le lo los me mi mis muy no nos nuestra nuestro o para pero por porque qué que quién se \
     ser si sin sobre son su sus te tu un una y ya yo",
    // Italian
    "a ai al alla anche che chi ci come con cosa da dal dalla degli dei del della delle di dove e era gli ha hanno ho i \
     il in io la le lo ma mi mio nel nella non o per perché più quale quali quando questa questo se si sono su sul un \
     una uno",
    // Portuguese
    "a ao aos as com como da das de do dos e ela ele em era essa esse esta está este eu foi fui há isso mais mas me \
     meu minha na nas não no nos nós o onde os ou para pela pelo por porque qual quais quando que quem se seu sua são \
     um uma você",
    // Dutch
    "aan als bij dat de der deze die dit een en er had heb hebben heeft het hij hoe hun ik in is je kan maar me met \
     mijn naar niet nog nu of om onze ons ook op over te tot uit van veel voor waar waarom wanneer was wat we welke werd \
     wij wie worden zijn ze zo",
    // Polish
    "ale był była być co czy dla do gdzie i ich ja jak jaki jaka jakie jest jestem już kiedy kto który która które \
     mnie mój na nam nas nasz nie o od po przez się są ta tak te tego tym to w we z za ze że",
    // Russian
    "а бы был была были в во вы где да для до его ее если еще за и из или их к как какая какие какой когда кто ли мне \
     мой мы на нам нас не но о об он она они от по почему при с со та так там то ты у уже чем что это этот я",
];

#[cfg(test)]
mod tests {
    use super::{WordRole, roles};

    #[test]
    fn stop_words_depend_on_the_other_words() {
        use WordRole::{Content, Stop, Weak};
        assert_eq!(roles(&["what", "did", "anna", "make?"]), [Stop, Stop, Content, Weak]);
        assert_eq!(roles(&["die", "hard"]), [Content, Content]);
        assert_eq!(roles(&["wo", "ist", "die", "datei"]), [Stop, Stop, Stop, Content]);
        assert_eq!(roles(&["don't", "it\u{2019}s", "anna's"]), [Stop, Stop, Content]);
    }
}

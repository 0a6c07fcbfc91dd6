//! Signs that a text is cut into tokens in a way that does not suit it.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::PathBuf;

use super::{Text, Tokens};

/// Letters in a row that no word of a language with spaces has.
const LONG: usize = 40;
/// Letters and marks to a word, on average, that no language with spaces has.
const LONG_ON_AVERAGE: usize = 10;
/// One word in so many has a mark at its end in a text that is not prepared: prose has twice as many and more, prepared texts
/// have abbreviations only.
const MARKED: usize = 20;
/// Marks that end parts of sentences.
const MARKS: [char; 6] = ['.', ',', ';', ':', '!', '?'];
/// Fewer tokens than this say nothing about how often each occurs.
const FEW: usize = 100;

/// A reason to doubt that a text is cut as it should be, for people: file, finding and what to set instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubt {
    /// The file.
    pub path: PathBuf,
    /// What was found.
    pub sign: Sign,
    /// The name of the way of cutting that may suit the text better.
    pub better: &'static str,
}

/// What looks wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sign {
    /// Most letters are of a script that puts no spaces between words.
    ScriptWithoutSpaces {
        /// A word as it was cut.
        example: String,
    },
    /// Words are very long on average.
    FewTokens {
        /// So many tokens, in words.
        tokens: String,
        /// Letters and marks, white space not counted.
        characters: usize,
    },
    /// A word has very many letters in a row.
    LongToken {
        /// Its line in the file.
        line: usize,
        /// Its first letters.
        beginning: String,
        /// Letters in a row.
        letters: usize,
    },
    /// Most tokens occur only once, so that nothing can be learned of them.
    MostOccurOnce {
        /// Those that do.
        once: usize,
        /// So many tokens, in words.
        tokens: String,
    },
    /// Many words have a comma or a full stop at their end, and are other words than without.
    MarksAtWords {
        /// Those that do.
        marked: usize,
        /// So many tokens, in words.
        tokens: String,
        /// A word that is there with a mark and without.
        example: String,
    },
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path.display())?;
        match &self.sign {
            Sign::ScriptWithoutSpaces { example } => write!(
                f,
                "most of its letters are of a script without spaces between words, and `{example}` would be one word"
            ),
            Sign::FewTokens { tokens, characters } => write!(
                f,
                "{tokens} for {characters} letters and marks, more than {LONG_ON_AVERAGE} for each"
            ),
            Sign::LongToken {
                line,
                beginning,
                letters,
            } => write!(
                f,
                "line {line}: `{beginning}` has {letters} letters in a row"
            ),
            Sign::MostOccurOnce { once, tokens } => write!(
                f,
                "{once} of {tokens} occur only once, and a model learns nothing of those"
            ),
            Sign::MarksAtWords {
                marked,
                tokens,
                example,
            } => write!(
                f,
                "{marked} of {tokens} end with a mark, and `{example}` would be another word than `{}`",
                example.trim_end_matches(MARKS)
            ),
        }?;
        write!(
            f,
            "; if that is not meant, train with --set data.tokens={}",
            self.better
        )
    }
}

/// The first reason, if there is one, to doubt that cutting a training text so suits it.
pub fn doubt(tokens: Tokens, text: &Text) -> Option<Doubt> {
    if tokens.is_measured_in_bits() {
        return None;
    }
    let signs = [script, long_words, few_tokens, most_once, marks];
    let (sign, better) = signs.iter().find_map(|sign| sign(tokens, text))?;
    let is_better = better != tokens.name();
    Some(Doubt {
        path: text.path().into(),
        sign,
        better: if is_better { better } else { "characters" },
    })
}

type Finding = Option<(Sign, &'static str)>;

fn script(tokens: Tokens, text: &Text) -> Finding {
    let letters = || text.content().chars().filter(|c| c.is_alphabetic());
    let without = letters().filter(|&c| is_without_spaces(c)).count();
    // Other ways than words know these scripts.
    if !tokens.is_default() || 2 * without <= letters().count() {
        return None;
    }
    let words = text.content().split_whitespace();
    let example = words
        .filter(|word| word.contains(is_without_spaces))
        .max_by_key(|word| word.chars().count())?;
    let example = beginning(example);
    Some((Sign::ScriptWithoutSpaces { example }, "characters"))
}

fn few_tokens(tokens: Tokens, text: &Text) -> Finding {
    let cut = tokens.cut(text.content());
    let words = cut.filter(|token| token.name != tokens.line_end()).count();
    let content = text.content().chars();
    let characters = content.filter(|c| !c.is_whitespace()).count();
    let sign = Sign::FewTokens {
        tokens: tokens.counted(words),
        characters,
    };
    (characters > LONG_ON_AVERAGE * words).then_some((sign, "characters"))
}

fn long_words(tokens: Tokens, text: &Text) -> Finding {
    tokens.cut(text.content()).find_map(|token| {
        let runs = token.name.split(|c: char| !c.is_alphabetic());
        let longest = runs.max_by_key(|run| run.chars().count())?;
        let letters = longest.chars().count();
        let sign = || Sign::LongToken {
            line: text.line(token.at),
            beginning: beginning(longest),
            letters,
        };
        (letters >= LONG).then(|| (sign(), "characters"))
    })
}

fn most_once(tokens: Tokens, text: &Text) -> Finding {
    let (once, all) = occur_once(tokens, text);
    let sign = Sign::MostOccurOnce {
        once,
        tokens: tokens.counted(all),
    };
    let is_most = |(once, all): (usize, usize)| 2 * once > all;
    let smaller =
        Tokens::named("unicode-words").filter(|&smaller| !is_most(occur_once(smaller, text)));
    let better = smaller.map_or("characters", |smaller| smaller.name());
    (all >= FEW && is_most((once, all))).then_some((sign, better))
}

fn marks(tokens: Tokens, text: &Text) -> Finding {
    let words = || text.content().split_whitespace();
    let is_marked = |word: &&str| {
        let bare = word.trim_end_matches(MARKS);
        bare.len() < word.len() && bare.ends_with(char::is_alphabetic)
    };
    let (all, marked) = (words().count(), words().filter(is_marked).count());
    if !tokens.is_default() || all < FEW || MARKED * marked < all {
        return None;
    }
    let bare: HashSet<&str> = words().filter(|word| !is_marked(word)).collect();
    let example = words()
        .filter(is_marked)
        .find(|word| bare.contains(word.trim_end_matches(MARKS)))?;
    let sign = Sign::MarksAtWords {
        marked,
        tokens: tokens.counted(all),
        example: example.to_owned(),
    };
    Some((sign, "unicode-words"))
}

/// How many tokens occur only once, and how many there are.
fn occur_once(tokens: Tokens, text: &Text) -> (usize, usize) {
    let mut counts: HashMap<_, usize> = HashMap::new();
    let mut all = 0;
    for token in tokens.cut(text.content()) {
        if token.name != tokens.line_end() {
            *counts.entry(token.name).or_default() += 1;
            all += 1;
        }
    }
    let once = counts.values().filter(|&&count| count == 1).count();
    (once, all)
}

/// The first letters of a word, with a mark if there are more.
fn beginning(word: &str) -> String {
    let mut letters = word.chars();
    let first: String = letters.by_ref().take(12).collect();
    let more = if letters.next().is_some() { "…" } else { "" };
    first + more
}

/// Chinese, Japanese, Thai, Lao, Myanmar, Khmer and Tibetan letters, for whose words there are no spaces.
fn is_without_spaces(c: char) -> bool {
    matches!(u32::from(c),
        0x0e00..=0x0eff | 0x0f00..=0x0fff | 0x1000..=0x109f | 0x1780..=0x17ff
        | 0x3040..=0x30ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x3ffff)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::text::moby_dick;

    fn told(tokens: &str, content: &str) -> Option<String> {
        let text = Text::from_bytes(Path::new("some.txt"), content.into()).unwrap();
        let doubt = doubt(Tokens::named(tokens).unwrap(), &text);
        doubt.map(|doubt| doubt.to_string())
    }

    #[test]
    fn chinese_as_words_is_doubted_and_as_anything_else_is_not() {
        let text = "床前明月光，疑是地上霜。\n".repeat(80);
        let message = told("words", &text).unwrap();
        assert_eq!(
            message,
            "some.txt: most of its letters are of a script without spaces between words, and \
             `床前明月光，疑是地上霜。` would be one word; if that is not meant, train with --set data.tokens=characters"
        );
        for better in ["characters", "bytes", "unicode-words"] {
            assert_eq!(told(better, &text), None, "{better}");
        }
    }

    #[test]
    fn a_word_of_forty_letters_is_named_with_its_line() {
        let long = "a".repeat(40);
        let message = told("words", &format!("some words\nand a {long}\n")).unwrap();
        assert!(
            message.starts_with("some.txt: line 2: `aaaaaaaaaaaa…` has 40 letters in a row; "),
            "{message}"
        );
        assert!(message.ends_with("data.tokens=characters"), "{message}");
        assert_eq!(
            told("words", &format!("some more words and a {}\n", &long[1..])),
            None
        );
        // An address is long too, but no word.
        let address = "if you want to know more of it go and see https://an.example/of/a/long/address/with/no/end/to/it\n";
        assert_eq!(told("words", address), None);
    }

    #[test]
    fn very_long_words_on_average_are_doubted() {
        let message = told("words", &"wordswithoutspaces\n".repeat(20)).unwrap();
        assert!(
            message.starts_with(
                "some.txt: 20 words for 360 letters and marks, more than 10 for each; "
            ),
            "{message}"
        );
        assert_eq!(told("words", &"tencharact\n".repeat(20)), None);
    }

    #[test]
    fn tokens_that_occur_once_are_doubted_if_they_are_most() {
        let all_different: Vec<String> = (0..150).map(|i| format!("w{i}")).collect();
        let text = format!("{} a a\n", all_different.join(" "));
        let message = told("words", &text).unwrap();
        assert_eq!(
            message,
            "some.txt: 150 of 152 words occur only once, and a model learns nothing of those; if that is not meant, \
             train with --set data.tokens=characters"
        );
        // Of pieces most occur often.
        let marked: Vec<String> = (0..150).map(|i| format!("sea,{i}")).collect();
        let message = told("words", &marked.join(" ")).unwrap();
        assert!(message.ends_with("data.tokens=unicode-words"), "{message}");
        let message = told("unicode-words", &text).unwrap();
        assert!(
            message.contains("pieces occur only once")
                && message.ends_with("data.tokens=characters"),
            "{message}"
        );
        assert_eq!(told("words", &text.repeat(2)), None);
        assert_eq!(told("words", "few words say nothing\n"), None);
    }

    #[test]
    fn an_ordinary_text_is_not_doubted() {
        for tokens in Tokens::all() {
            assert_eq!(doubt(tokens, &moby_dick().train), None, "{tokens:?}");
        }
    }

    #[test]
    fn prose_whose_marks_stick_to_its_words_is_doubted_and_a_prepared_text_is_not() {
        let prose =
            "The whale, she said, was white. Was it a whale? It was white, as white as milk.\n";
        let message = told("words", &prose.repeat(20)).unwrap();
        assert_eq!(
            message,
            "some.txt: 120 of 340 words end with a mark, and `white.` would be another word than `white`; if that is \
             not meant, train with --set data.tokens=unicode-words"
        );
        assert_eq!(told("unicode-words", &prose.repeat(20)), None);
        let prepared = "the whale , mr. starbuck said , was white .\n";
        assert_eq!(
            told("words", &prepared.repeat(20)),
            None,
            "there is no `mr` beside `mr.`"
        );
    }
}

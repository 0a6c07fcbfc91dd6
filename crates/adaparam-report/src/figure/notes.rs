//! Sentences that figures write about themselves.

use crate::number::count;

/// A sentence about values that are missing from a figure.
pub(super) fn omission(undrawable: usize, noun: &str, positive_only: bool) -> Option<String> {
    let rule = if positive_only {
        "finite and positive"
    } else {
        "finite"
    };
    let verb = if undrawable == 1 { "is" } else { "are" };
    let missing = count(undrawable, noun);
    (undrawable > 0).then(|| format!("Not shown: {missing} that {verb} not {rule}."))
}

/// Sentences as one text, without the empty ones.
pub(super) fn joined<'a>(sentences: impl IntoIterator<Item = &'a str>) -> String {
    let sentences: Vec<&str> = sentences
        .into_iter()
        .filter(|sentence| !sentence.is_empty())
        .collect();
    sentences.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_missing_needs_no_note() {
        assert!(omission(0, "point", false).is_none());
    }

    #[test]
    fn notes_agree_in_number() {
        assert_eq!(
            omission(1, "point", false).as_deref(),
            Some("Not shown: 1 point that is not finite.")
        );
        assert_eq!(
            omission(2, "value", true).as_deref(),
            Some("Not shown: 2 values that are not finite and positive.")
        );
    }

    #[test]
    fn empty_sentences_leave_no_gap() {
        assert_eq!(joined(["", "a.", "", "b."]), "a. b.");
    }
}

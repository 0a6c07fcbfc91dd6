//! A check that markup is well-formed XML, as far as this crate writes it.

/// Panics with the place where tags do not nest, an attribute is not quoted, or a bare `&` or `<` stands in text.
pub(crate) fn assert_well_formed(markup: &str) {
    if let Err(fault) = check(markup) {
        panic!("{fault}");
    }
}

fn check(markup: &str) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = markup.strip_prefix("<!DOCTYPE html>").unwrap_or(markup);
    while let Some(at) = rest.find('<') {
        check_text(&rest[..at])?;
        let end = rest[at..]
            .find('>')
            .ok_or_else(|| format!("a tag is not closed: {}", excerpt(&rest[at..])))?
            + at;
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            match open.pop() {
                Some(opened) if opened == name => {}
                other => {
                    return Err(format!(
                        "</{name}> closes {other:?} before: {}",
                        excerpt(rest)
                    ));
                }
            }
        } else {
            let (content, closes) = tag
                .strip_suffix('/')
                .map_or((tag, false), |content| (content, true));
            let name = check_tag(content)?;
            if !closes {
                open.push(name);
            }
            // The text of a style sheet may hold `>`, which the search for tags does not mind, and no `<`.
        }
    }
    check_text(rest)?;
    if open.is_empty() {
        Ok(())
    } else {
        Err(format!("never closed: {open:?}"))
    }
}

fn check_tag(content: &str) -> Result<&str, String> {
    let name_end = content.find(char::is_whitespace).unwrap_or(content.len());
    let (name, mut attributes) = content.split_at(name_end);
    if name.is_empty()
        || !name
            .chars()
            .all(|character| character.is_ascii_alphanumeric())
    {
        return Err(format!("not a tag name: <{}", excerpt(content)));
    }
    let mut seen = Vec::new();
    while !attributes.trim_start().is_empty() {
        if !attributes.starts_with(char::is_whitespace) {
            return Err(format!(
                "no space before an attribute: <{}",
                excerpt(content)
            ));
        }
        let (key, value) = attributes
            .trim_start()
            .split_once("=\"")
            .ok_or_else(|| format!("an attribute without a quoted value: <{}", excerpt(content)))?;
        if !key
            .chars()
            .all(|character| character.is_ascii_alphanumeric() || "-:".contains(character))
            || seen.contains(&key)
        {
            return Err(format!("not an attribute, or one given twice: {key:?}"));
        }
        seen.push(key);
        let (value, after) = value
            .split_once('"')
            .ok_or_else(|| format!("a quote is not closed: <{}", excerpt(content)))?;
        check_text(value)?;
        attributes = after;
    }
    Ok(name)
}

fn check_text(text: &str) -> Result<(), String> {
    for part in text.split('&').skip(1) {
        let entity = part.split_once(';').map(|(entity, _)| entity);
        if !matches!(entity, Some("amp" | "lt" | "gt" | "quot" | "#39")) {
            return Err(format!("a bare ampersand: &{}", excerpt(part)));
        }
    }
    match text
        .chars()
        .find(|character| character.is_control() && !matches!(character, '\n' | '\t'))
    {
        Some(character) => Err(format!("a control character: {character:?}")),
        None => Ok(()),
    }
}

fn excerpt(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn good_markup_passes() {
        assert_eq!(
            check("<!DOCTYPE html><a b=\"c\" d-e=\"&lt;\"><f/>x &amp; y</a>\n"),
            Ok(())
        );
    }

    #[test]
    fn bad_markup_is_found() {
        for bad in [
            "<a>",
            "<a></b>",
            "</a>",
            "<a b=c/>",
            "<a b=\"c\"d=\"e\"/>",
            "a & b",
            "<a b=\"1\" b=\"2\"/>",
            "<a",
            "<a><b></a></b>",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}

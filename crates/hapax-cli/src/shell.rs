//! Commands for people to paste.

/// A word that a shell reads as it is.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/:._-+=,@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_to_a_shell_whatever_is_in_it() {
        assert_eq!(quoted("/usr/bin/hapax"), "/usr/bin/hapax");
        assert_eq!(quoted("/my files/hapax"), "'/my files/hapax'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}

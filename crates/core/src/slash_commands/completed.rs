//! A command with an argument as its server suggests it.

/// One way to go on with a command that is being typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletedCommand {
    /// What the argument would be.
    pub value: String,
    /// The whole command with it.
    pub text: String,
}

impl CompletedCommand {
    /// Quoted where it would be taken for several words; `None` where no quotes hold it together.
    pub(crate) fn of(kept: &str, value: String) -> Option<Self> {
        let is_plain = !value.contains(char::is_whitespace) && !value.starts_with(['"', '\'']);
        let quote = match is_plain {
            true => "",
            false => ["\"", "'"].into_iter().find(|quote| !value.contains(quote))?,
        };
        Some(Self { text: format!("{kept}{quote}{value}{quote} "), value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_several_words_is_quoted_where_that_is_possible() {
        let text = |value: &str| CompletedCommand::of("/s:p ", value.to_owned()).map(|done| done.text);
        assert_eq!(text("Paris").as_deref(), Some("/s:p Paris "));
        assert_eq!(text("New York").as_deref(), Some("/s:p \"New York\" "));
        assert_eq!(text("the \"old\" town").as_deref(), Some("/s:p 'the \"old\" town' "));
        assert_eq!(text("a 'b' \"c\""), None);
    }
}

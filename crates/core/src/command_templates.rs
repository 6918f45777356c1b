//! Slash commands that users and projects write: a Markdown text with places for what the user types behind the
//! name. A template is only text: attache runs nothing in it. Pure; reads no file.

use std::sync::Arc;

use crate::front_matter::{FrontMatter, FrontMatterError, FrontValue};
use crate::limits::TEMPLATE_EXPANSION_BYTES;
use crate::skills::short_line;

/// One template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandTemplate {
    /// Without the slash; directories before it, as `directory:name`.
    pub name: Arc<str>,
    /// One line, for lists of commands.
    pub description: Arc<str>,
    /// What may follow the name.
    pub input_hint: Option<Arc<str>>,
    /// The agent and model that answer, if the template names them.
    pub choice: TurnChoice,
    /// Keys of its file that are nearly known ones.
    pub slips: Vec<FrontMatterError>,
    body: Arc<str>,
}

/// The keys that mean something here. Those of other programs may stand beside them.
const KEYS: [&str; 4] = ["description", "argument-hint", "agent", "model"];

/// The agent and the model of one turn, where they are not the session's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnChoice {
    /// The agent that answers instead of the session's.
    pub agent: Option<String>,
    /// As `/model` takes it: `PROVIDER/NAME`, or the name alone.
    pub model: Option<String>,
}

impl TurnChoice {
    /// Nothing is chosen.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl CommandTemplate {
    /// Reads the file of a command that is called `name`.
    pub fn parse(name: &str, text: &str) -> Result<Self, FrontMatterError> {
        let front = FrontMatter::parse(text)?;
        let body = front.body.trim();
        if body.is_empty() {
            return Err(FrontMatterError::new(text.lines().count().max(1), "there is no text"));
        }
        let description = front.text("description")?.map(short_line).filter(|line| !line.is_empty());
        let first_line =
            || short_line(body.lines().next().unwrap_or_default().trim_start_matches(['#', ' ']));
        let takes_input =
            body.contains("$ARGUMENTS") || (1..=9).any(|place| body.contains(&format!("${place}")));
        let hint = front.field("argument-hint").and_then(|field| match &field.value {
            FrontValue::Text(hint) => Some(short_line(hint)).filter(|hint| !hint.is_empty()),
            FrontValue::List(hints) => Some(short_line(&hints.join(" "))),
            FrontValue::Nested(_) => None,
        });
        let input_hint = hint.or(takes_input.then(|| "arguments".to_owned()));
        let choice = TurnChoice {
            agent: front.text("agent")?.map(str::to_owned),
            model: front.text("model")?.map(str::to_owned),
        };
        Ok(Self {
            name: name.into(),
            description: description.unwrap_or_else(first_line).into(),
            input_hint: input_hint.map(Arc::from),
            choice,
            slips: front.slips(&KEYS),
            body: body.into(),
        })
    }

    /// The same template without its agent and model.
    pub fn without_choice(mut self) -> Self {
        self.choice = TurnChoice::default();
        self
    }

    /// The text for the model. Typed text is inserted once: a `$1` within it stays. A template without places
    /// gets the typed text at its end. `None`: the result would be too long.
    pub fn expand(&self, arguments: &str) -> Option<String> {
        let words = words(arguments);
        let (mut text, mut rest, mut is_used) = (String::new(), &*self.body, false);
        while let Some(place) = rest.find('$') {
            text.push_str(&rest[..place]);
            rest = &rest[place..];
            let (value, length) = match place_holder(rest) {
                Some(TemplatePlace::All) => (arguments, "$ARGUMENTS".len()),
                Some(TemplatePlace::Word(number)) => {
                    (words.get(number - 1).map_or("", String::as_str), "$1".len())
                }
                None => ("$", 1),
            };
            is_used |= length > 1;
            text.push_str(value);
            rest = &rest[length..];
            if text.len() > TEMPLATE_EXPANSION_BYTES {
                return None;
            }
        }
        text.push_str(rest);
        if !is_used && !arguments.is_empty() {
            text.push_str("\n\n");
            text.push_str(arguments);
        }
        (text.len() <= TEMPLATE_EXPANSION_BYTES).then_some(text)
    }
}

/// A place in a template.
enum TemplatePlace {
    All,
    /// From 1 to 9.
    Word(usize),
}

fn place_holder(text: &str) -> Option<TemplatePlace> {
    if text.starts_with("$ARGUMENTS") {
        return Some(TemplatePlace::All);
    }
    let mut characters = text.chars().skip(1);
    let number = characters.next()?.to_digit(10).filter(|digit| *digit > 0)?;
    // `$10` is an amount of money, not the first word and a zero.
    let is_alone = characters.next().is_none_or(|next| !next.is_ascii_digit());
    is_alone.then_some(TemplatePlace::Word(number as usize))
}

/// Words as they were typed; quotes hold several together. A quote inside a word is an ordinary letter; a quote
/// that never ends holds the rest.
fn words(arguments: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = arguments.trim_start();
    while let Some((word, behind)) = next_word(rest) {
        words.push(word.to_owned());
        rest = behind;
    }
    words
}

/// The first word, without its quotes, and what is behind it.
pub(crate) fn next_word(rest: &str) -> Option<(&str, &str)> {
    let (word, behind) = match rest.chars().next()? {
        quote @ ('"' | '\'') => rest[1..].split_once(quote).unwrap_or((&rest[1..], "")),
        _ => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
    };
    Some((word, behind.trim_start()))
}

/// The same words for a number of places: the last place gets all that is left, as the user typed it.
pub(crate) fn words_for(places: usize, arguments: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = arguments.trim();
    while words.len() < places
        && let Some((word, behind)) = next_word(rest)
    {
        let is_last = words.len() + 1 == places && !behind.is_empty();
        words.push(if is_last { rest } else { word }.to_owned());
        rest = behind;
    }
    words
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn template(text: &str) -> CommandTemplate {
        CommandTemplate::parse("name", text).unwrap()
    }

    #[test]
    fn what_was_typed_is_put_in_its_places_once() {
        let expand = |body: &str, arguments: &str| template(body).expand(arguments).unwrap();
        assert_eq!(expand("a $1 b $2 c $ARGUMENTS", "x 'y z' w"), "a x b y z c x 'y z' w");
        assert_eq!(expand("[$1][$9]", "\"one two"), "[one two][]");
        assert_eq!(expand("$ARGUMENTS", "$1 $ARGUMENTS"), "$1 $ARGUMENTS");
        assert_eq!(expand("costs $10, $0, $x, $", "y"), "costs $10, $0, $x, $\n\ny");
        assert_eq!(expand("Fix it", ""), "Fix it");
        assert_eq!(expand("Fix it", "now, please"), "Fix it\n\nnow, please");
        assert_eq!(expand("Run !`ls` and $(date)", ""), "Run !`ls` and $(date)");
        assert_eq!(expand("it's $1", "don't stop"), "it's don't");
        assert_eq!(template(&"$ARGUMENTS".repeat(2_000)).expand(&"x".repeat(10_000)), None);
    }

    #[test]
    fn the_last_place_takes_what_is_left() {
        for (places, typed, words) in [
            (1, "a b  c", &["a b  c"][..]),
            (1, "'a b'", &["a b"]),
            (2, "'x y' b c", &["x y", "b c"]),
            (2, "a \"b c\" ", &["a", "b c"]),
            (3, "a b", &["a", "b"]),
            (2, "\"\" b", &["", "b"]),
            (2, "", &[]),
            (0, "a", &[]),
        ] {
            assert_eq!(words_for(places, typed), words, "{typed}");
        }
    }

    #[test]
    fn front_matter_says_how_it_is_listed_and_who_answers() {
        let said = template(
            "---\ndescription: Looks\nargument-hint: [file]\nmodel: a/b\nagent: plan\n---\nLook at $1",
        );
        assert_eq!((&*said.description, said.input_hint.as_deref()), ("Looks", Some("file")));
        let choice = TurnChoice { agent: Some("plan".to_owned()), model: Some("a/b".to_owned()) };
        assert_eq!(said.choice, choice);
        assert!(said.without_choice().choice.is_empty());
        let bare = template("# Review\n\nReview $ARGUMENTS");
        assert_eq!((&*bare.description, bare.input_hint.as_deref()), ("Review", Some("arguments")));
        assert_eq!(template("Plain").input_hint, None);
        for (text, line) in [("", 1), ("---\na: b\n---\n \n", 4), ("---\nmodel: [x]\n---\nText", 2)] {
            assert_eq!(CommandTemplate::parse("name", text).unwrap_err().line, line, "{text}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(body in "([$1-9A-Z]|ARGUMENTS|[\"' é\n]){0,40}", arguments in "[$1\"' éx\n]{0,20}") {
            if let Ok(template) = CommandTemplate::parse("name", &body) {
                template.expand(&arguments);
            }
        }

        #[test]
        fn no_more_words_than_places(places in 0_usize..5, typed in "[\"' éx\n]{0,20}") {
            prop_assert!(words_for(places, &typed).len() <= places);
        }
    }
}

//! The names of all simple commands in the tree that brush-parser makes of a text. Follows no variable and no
//! program.

use std::collections::BTreeSet;

use brush_parser::ast::{
    AndOr, AndOrList, Assignment, AssignmentValue, Command, CommandPrefixOrSuffixItem, CompoundCommand,
    CompoundList, ExtendedTestExpr, IoFileRedirectTarget, IoRedirect, Pipeline, RedirectList, SimpleCommand,
    Word,
};
use brush_parser::word::{self, ParameterExpr, WordPiece, WordPieceWithSource};
use brush_parser::{Parser, ParserOptions};

#[derive(Debug, Default)]
pub(super) struct Opinion {
    pub(super) names: BTreeSet<String>,
    /// Some name is only known when variables are, or is made by braces.
    pub(super) open: bool,
}

/// `None`: it can't parse that.
pub(super) fn opinion(text: &str) -> Option<Opinion> {
    let mut opinion = Opinion::default();
    opinion.text(text)?;
    Some(opinion)
}

impl Opinion {
    fn text(&mut self, text: &str) -> Option<()> {
        let program = Parser::new(text.as_bytes(), &ParserOptions::default()).parse_program().ok()?;
        program.complete_commands.iter().try_for_each(|list| self.list(list))
    }

    fn list(&mut self, list: &CompoundList) -> Option<()> {
        list.0.iter().try_for_each(|item| self.and_or(&item.0))
    }

    fn and_or(&mut self, list: &AndOrList) -> Option<()> {
        self.pipeline(&list.first)?;
        list.additional.iter().try_for_each(|next| match next {
            AndOr::And(pipeline) | AndOr::Or(pipeline) => self.pipeline(pipeline),
        })
    }

    fn pipeline(&mut self, pipeline: &Pipeline) -> Option<()> {
        if pipeline.timed.is_some() {
            self.names.insert("time".to_owned());
        }
        pipeline.seq.iter().try_for_each(|command| self.command(command))
    }

    fn command(&mut self, command: &Command) -> Option<()> {
        match command {
            Command::Simple(simple) => self.simple(simple),
            Command::Compound(compound, redirects) => {
                self.compound(compound)?;
                self.redirects(redirects.as_ref())
            }
            Command::Function(function) => {
                self.compound(&function.body.0)?;
                self.redirects(function.body.1.as_ref())
            }
            Command::ExtendedTest(test, redirects) => {
                self.names.insert("[[".to_owned());
                self.test(&test.expr)?;
                self.redirects(redirects.as_ref())
            }
        }
    }

    fn compound(&mut self, compound: &CompoundCommand) -> Option<()> {
        match compound {
            CompoundCommand::Arithmetic(arithmetic) => self.written(&arithmetic.expr.value),
            CompoundCommand::ArithmeticForClause(clause) => {
                for expression in
                    [&clause.initializer, &clause.condition, &clause.updater].into_iter().flatten()
                {
                    self.written(&expression.value)?;
                }
                self.list(&clause.body.list)
            }
            CompoundCommand::BraceGroup(group) => self.list(&group.list),
            CompoundCommand::Subshell(subshell) => self.list(&subshell.list),
            CompoundCommand::ForClause(clause) => {
                self.words(clause.values.as_deref().unwrap_or_default())?;
                self.list(&clause.body.list)
            }
            CompoundCommand::CaseClause(clause) => {
                self.word(&clause.value)?;
                clause.cases.iter().try_for_each(|case| {
                    self.words(&case.patterns)?;
                    case.cmd.as_ref().map_or(Some(()), |list| self.list(list))
                })
            }
            CompoundCommand::IfClause(clause) => {
                self.list(&clause.condition)?;
                self.list(&clause.then)?;
                clause.elses.iter().flatten().try_for_each(|other| {
                    other.condition.as_ref().map_or(Some(()), |list| self.list(list))?;
                    self.list(&other.body)
                })
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                self.list(&clause.0)?;
                self.list(&clause.1.list)
            }
            CompoundCommand::Coprocess(coprocess) => self.command(&coprocess.body),
        }
    }

    fn simple(&mut self, simple: &SimpleCommand) -> Option<()> {
        if let Some(name) = &simple.word_or_name {
            self.word(name)?;
            match plain(&word::parse(&name.value, &ParserOptions::default()).ok()?) {
                Some(name) if !name.contains('{') => drop(self.names.insert(name)),
                Some(_) | None => self.open = true,
            }
        }
        let prefix = simple.prefix.iter().flat_map(|prefix| &prefix.0);
        let suffix = simple.suffix.iter().flat_map(|suffix| &suffix.0);
        prefix.chain(suffix).try_for_each(|item| match item {
            CommandPrefixOrSuffixItem::IoRedirect(redirect) => self.redirect(redirect),
            CommandPrefixOrSuffixItem::Word(word) => self.word(word),
            CommandPrefixOrSuffixItem::AssignmentWord(assignment, _) => self.assignment(assignment),
            CommandPrefixOrSuffixItem::ProcessSubstitution(_, subshell) => self.list(&subshell.list),
        })
    }

    fn assignment(&mut self, assignment: &Assignment) -> Option<()> {
        match &assignment.value {
            AssignmentValue::Scalar(word) => self.word(word),
            AssignmentValue::Array(elements) => elements.iter().try_for_each(|(key, value)| {
                key.as_ref().map_or(Some(()), |key| self.word(key))?;
                self.word(value)
            }),
        }
    }

    fn redirects(&mut self, redirects: Option<&RedirectList>) -> Option<()> {
        redirects.iter().flat_map(|list| &list.0).try_for_each(|redirect| self.redirect(redirect))
    }

    fn redirect(&mut self, redirect: &IoRedirect) -> Option<()> {
        match redirect {
            IoRedirect::File(_, _, target) => match target {
                IoFileRedirectTarget::Filename(word) | IoFileRedirectTarget::Duplicate(word) => {
                    self.word(word)
                }
                IoFileRedirectTarget::ProcessSubstitution(_, subshell) => self.list(&subshell.list),
                IoFileRedirectTarget::Fd(_) => Some(()),
            },
            IoRedirect::HereDocument(_, document) if document.requires_expansion => {
                let pieces = word::parse_heredoc(&document.doc.value, &ParserOptions::default()).ok()?;
                self.pieces(&pieces)
            }
            IoRedirect::HereDocument(..) => Some(()),
            IoRedirect::HereString(_, word) | IoRedirect::OutputAndError(word, _) => self.word(word),
        }
    }

    fn test(&mut self, test: &ExtendedTestExpr) -> Option<()> {
        match test {
            ExtendedTestExpr::And(one, other) | ExtendedTestExpr::Or(one, other) => {
                self.test(one)?;
                self.test(other)
            }
            ExtendedTestExpr::Not(inner) | ExtendedTestExpr::Parenthesized(inner) => self.test(inner),
            ExtendedTestExpr::UnaryTest(_, word) => self.word(word),
            ExtendedTestExpr::BinaryTest(_, one, other) => {
                self.word(one)?;
                self.word(other)
            }
        }
    }

    fn words(&mut self, words: &[Word]) -> Option<()> {
        words.iter().try_for_each(|word| self.word(word))
    }

    fn word(&mut self, word: &Word) -> Option<()> {
        self.written(&word.value)
    }

    fn written(&mut self, text: &str) -> Option<()> {
        let pieces = word::parse(text, &ParserOptions::default()).ok()?;
        self.pieces(&pieces)
    }

    fn pieces(&mut self, pieces: &[WordPieceWithSource]) -> Option<()> {
        pieces.iter().try_for_each(|piece| match &piece.piece {
            WordPiece::CommandSubstitution(text) | WordPiece::BackquotedCommandSubstitution(text) => {
                self.text(text)
            }
            WordPiece::DoubleQuotedSequence(inner) | WordPiece::GettextDoubleQuotedSequence(inner) => {
                self.pieces(inner)
            }
            WordPiece::ArithmeticExpression(expression) => self.written(&expression.value),
            WordPiece::ParameterExpansion(parameter) => {
                texts_of(parameter).into_iter().flatten().try_for_each(|text| self.written(text))
            }
            WordPiece::Text(_)
            | WordPiece::SingleQuotedText(_)
            | WordPiece::AnsiCQuotedText(_)
            | WordPiece::TildeExpansion(_)
            | WordPiece::EscapeSequence(_) => Some(()),
        })
    }
}

/// Words within `${…}` that are expanded in turn.
fn texts_of(parameter: &ParameterExpr) -> [Option<&str>; 2] {
    match parameter {
        ParameterExpr::UseDefaultValues { default_value: text, .. }
        | ParameterExpr::AssignDefaultValues { default_value: text, .. }
        | ParameterExpr::IndicateErrorIfNullOrUnset { error_message: text, .. }
        | ParameterExpr::UseAlternativeValue { alternative_value: text, .. }
        | ParameterExpr::RemoveSmallestSuffixPattern { pattern: text, .. }
        | ParameterExpr::RemoveLargestSuffixPattern { pattern: text, .. }
        | ParameterExpr::RemoveSmallestPrefixPattern { pattern: text, .. }
        | ParameterExpr::RemoveLargestPrefixPattern { pattern: text, .. }
        | ParameterExpr::UppercaseFirstChar { pattern: text, .. }
        | ParameterExpr::UppercasePattern { pattern: text, .. }
        | ParameterExpr::LowercaseFirstChar { pattern: text, .. }
        | ParameterExpr::LowercasePattern { pattern: text, .. } => [text.as_deref(), None],
        ParameterExpr::ReplaceSubstring { pattern, replacement, .. } => {
            [Some(pattern.as_str()), replacement.as_deref()]
        }
        ParameterExpr::Substring { offset, length, .. } => {
            [Some(offset.value.as_str()), length.as_ref().map(|length| length.value.as_str())]
        }
        ParameterExpr::Parameter { .. }
        | ParameterExpr::ParameterLength { .. }
        | ParameterExpr::Transform { .. }
        | ParameterExpr::VariableNames { .. }
        | ParameterExpr::MemberKeys { .. } => [None, None],
    }
}

/// A word without expansions, its quotes taken away.
fn plain(pieces: &[WordPieceWithSource]) -> Option<String> {
    let texts: Option<Vec<String>> = pieces
        .iter()
        .map(|piece| match &piece.piece {
            WordPiece::Text(text) | WordPiece::SingleQuotedText(text) | WordPiece::AnsiCQuotedText(text) => {
                Some(text.clone())
            }
            WordPiece::EscapeSequence(text) => Some(text.trim_start_matches('\\').to_owned()),
            WordPiece::DoubleQuotedSequence(inner) => plain(inner),
            WordPiece::GettextDoubleQuotedSequence(_)
            | WordPiece::TildeExpansion(_)
            | WordPiece::ParameterExpansion(_)
            | WordPiece::CommandSubstitution(_)
            | WordPiece::BackquotedCommandSubstitution(_)
            | WordPiece::ArithmeticExpression(_) => None,
        })
        .collect();
    texts.map(|texts| texts.concat())
}

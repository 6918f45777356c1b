//! What a script may say, and how it answers a line that is wrong.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use attache_core::chunk::FinishReason;
use attache_core::ports::Usage;
use attache_core::ports::model::Price;
use attache_models::{Directive, ErrorKind, Script, ScriptError, ScriptStep};
use proptest::prelude::*;
use serde_json::json;

fn step(body: &str) -> ScriptStep {
    let script = Script::parse(&format!("on *\n{body}")).unwrap();
    script.step("anything", 0).unwrap().as_ref().clone()
}

fn directive(line: &str) -> Directive {
    let step = step(line);
    assert_eq!(step.directives.len(), 1, "{line}");
    step.directives.into_iter().next().unwrap()
}

fn call_of(line: &str) -> attache_models::ScriptedCall {
    match directive(line) {
        Directive::Call(call) => call,
        other => panic!("{other:?}"),
    }
}

fn error(text: &str) -> String {
    Script::parse(text).unwrap_err().to_string()
}

#[test]
fn an_exact_prompt_wins_over_a_prefix_and_a_prefix_over_any_wherever_they_stand() {
    let script = Script::parse(
        "on *\n text \"any\"\non \"fix\"*\n text \"prefix\"\non \"fix it\"\n text \"exact\"\non \"fix i\"*\n text \"late\"\non \"fix it\"\n text \"double\"",
    )
    .unwrap();
    let said = |prompt: &str| match &script.step(prompt, 0).unwrap().directives[..] {
        [Directive::Text(text)] => text.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(said("fix it"), "exact");
    assert_eq!(said("fix it all"), "prefix");
    assert_eq!(said("fix"), "prefix");
    assert_eq!(said("Fix"), "any");
    assert_eq!(said(""), "any");
}

#[test]
fn a_prompt_without_a_section_and_a_step_beyond_the_last_have_no_answer() {
    let script = Script::parse("on \"a\"\n text \"1\"\n ---\n text \"2\"").unwrap();
    assert!(script.step("b", 0).is_none());
    assert!(script.step("a", 1).is_some());
    assert!(script.step("a", 2).is_none());
}

#[test]
fn comments_blank_lines_indentation_bom_and_crlf_do_not_matter() {
    let plain = Script::parse("on \"a # b\"\ntext \"x # y\"\n---\ncut").unwrap();
    let dressed =
        Script::parse("\u{feff}# head\r\n\r\n  on \"a # b\"  # why\r\n\t text \"x # y\"#tight\r\n   --- # next\r\n\tcut #\r\n")
            .unwrap();
    assert_eq!(plain, dressed);
}

#[test]
fn every_directive_is_read_as_written() {
    assert_eq!(directive(r#"reasoning "hm\n""#), Directive::Reasoning("hm\n".into()));
    assert_eq!(directive(r#"text "ä\u00e4""#), Directive::Text("ää".into()));
    assert_eq!(
        directive(r#"stream 5000 "token " every 1ms"#),
        Directive::Stream { count: 5000, text: "token ".into(), every: Some(Duration::from_millis(1)) }
    );
    assert_eq!(
        directive(r#"stream 2 "t" # no pause"#),
        Directive::Stream { count: 2, text: "t".into(), every: None }
    );
    assert_eq!(directive("delay 50ms"), Directive::Delay(Duration::from_millis(50)));
    assert_eq!(directive("delay 2s"), Directive::Delay(Duration::from_secs(2)));
    assert_eq!(directive("delay 1m"), Directive::Delay(Duration::from_secs(60)));
    assert_eq!(
        directive(r#"file image/png "data:image/png;base64,AA==""#),
        Directive::File { media_type: "image/png".into(), url: "data:image/png;base64,AA==".into() }
    );
    assert_eq!(
        directive(r#"source "https://example.org" "A title""#),
        Directive::Source { url: "https://example.org".into(), title: Some("A title".into()) }
    );
    assert_eq!(
        directive(r#"source "https://example.org" # untitled"#),
        Directive::Source { url: "https://example.org".into(), title: None }
    );
    assert_eq!(directive("cut"), Directive::Cut);
    assert_eq!(directive("panic"), Directive::Panic);
}

#[test]
fn errors_carry_their_kind_and_options() {
    let scripted = |line: &str| match directive(line) {
        Directive::Error(error) => (error.kind, error.message, error.retry_after, error.times),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        scripted(r#"error transient "overloaded" retry_after=2s times=2 # both"#),
        (ErrorKind::Transient, "overloaded".into(), Some(Duration::from_secs(2)), Some(2))
    );
    assert_eq!(scripted(r#"error permanent "bad""#), (ErrorKind::Permanent, "bad".into(), None, None));
    assert_eq!(scripted(r#"error auth "who""#), (ErrorKind::Auth, "who".into(), None, None));
    assert_eq!(scripted(r#"error refused "no" times=1"#), (ErrorKind::Refused, "no".into(), None, Some(1)));
}

#[test]
fn usage_and_finish_belong_to_their_step() {
    let step = step(
        "usage input=1 output=2 reasoning=3 cache_read=4 cache_write=5\nfinish content-filter\nusage output=7",
    );
    assert_eq!(step.usage, Some(Usage { output: 7, ..Usage::default() }));
    assert_eq!(step.finish, Some(FinishReason::ContentFilter));
    for (word, reason) in [
        ("stop", FinishReason::Stop),
        ("length", FinishReason::Length),
        ("tool-calls", FinishReason::ToolCalls),
        ("other", FinishReason::Other),
    ] {
        assert_eq!(self::step(&format!("finish {word}")).finish, Some(reason));
    }
}

#[test]
fn arguments_are_json_where_they_can_be_and_text_where_not() {
    let call = call_of(r#"call read {"path": "a # b.txt"}   # comment"#);
    assert_eq!((call.tool_name.as_str(), call.id), ("read", None));
    assert_eq!(call.arguments, r#"{"path": "a # b.txt"}"#);
    assert_eq!(call.input, json!({"path": "a # b.txt"}));

    let call = call_of("call id=abc bash [1,2]");
    assert_eq!(
        (call.tool_name.as_str(), call.id.as_deref(), call.input),
        ("bash", Some("abc"), json!([1, 2]))
    );

    assert_eq!(call_of("call read not-json # comment").input, json!("not-json"));
    assert_eq!(call_of(r#"call read {"path": "a"#).input, json!(r#"{"path": "a"#));
    assert_eq!(call_of("call read {} {}").input, json!("{} {}"));
    assert_eq!(call_of("call todo").input, json!({}));
    assert_eq!(call_of("call todo # nothing").arguments, "{}");
}

#[test]
fn models_are_declared_before_the_first_section() {
    let script =
        Script::parse("model big context=1000000 max_output=9 images=true audio=true\nmodel small\non *")
            .unwrap();
    let declared: Vec<_> = script
        .models
        .iter()
        .map(|model| (model.name.as_str(), model.context, model.max_output, model.images, model.audio))
        .collect();
    assert_eq!(declared, [("big", 1_000_000, 9, true, true), ("small", 200_000, 32_000, false, false)]);
}

#[test]
fn prices_are_per_million_and_the_cache_costs_as_input_unless_said() {
    let script =
        Script::parse("model a price_input=3 price_output=15\nmodel b price_cache_read=0.3\nmodel c\non *");
    let prices: Vec<_> = script.unwrap().models.into_iter().map(|model| model.price).collect();
    let a = Price { input: 3.0, output: 15.0, cache_read: 3.0, cache_write: 3.0 };
    let b = Price { input: 0.0, output: 0.0, cache_read: 0.3, cache_write: 0.0 };
    assert_eq!(prices, [Some(a), Some(b), None]);
}

#[test]
fn a_wrong_line_is_named_with_what_was_expected_and_found() {
    let directives = "on, reasoning, text, stream, delay, call, file, source, usage, finish, error, cut, panic, model or ---";
    let table = [
        ("text \"x\"", "line 1: expected `on` or `model` before any other directive, found `text \"x\"`".to_owned()),
        ("---", "line 1: expected `on` or `model` before any other directive, found `---`".to_owned()),
        ("\n\non x", "line 3: expected a JSON string or * after `on`, found `x`".to_owned()),
        ("on", "line 1: expected a JSON string or * after `on`, found the end of the line".to_owned()),
        ("on \"x\" *", "line 1: expected the end of the line, found `*`".to_owned()),
        ("on *\nsay \"x\"", format!("line 2: expected {directives}, found `say \"x\"`")),
        ("on *\ntext x", "line 2: expected a JSON string after `text`, found `x`".to_owned()),
        ("on *\ntext \"x", "line 2: expected a JSON string after `text`, found `\"x`".to_owned()),
        ("on *\ntext # none", "line 2: expected a JSON string after `text`, found the end of the line".to_owned()),
        ("on *\ntext \"x\" y", "line 2: expected the end of the line, found `y`".to_owned()),
        ("on *\nstream many \"x\"", "line 2: expected a number of deltas after `stream`, found `many`".to_owned()),
        ("on *\nstream -1 \"x\"", "line 2: expected a number of deltas after `stream`, found `-1`".to_owned()),
        ("on *\nstream 1 \"x\" each 1ms", "line 2: expected the end of the line, found `each 1ms`".to_owned()),
        ("on *\nstream 1 \"x\" every", "line 2: expected a duration after `every` (such as 50ms, 2s, 1m), found the end of the line".to_owned()),
        ("on *\ndelay 5", "line 2: expected a duration after `delay` (such as 50ms, 2s, 1m), found `5`".to_owned()),
        ("on *\ndelay 99999999999999999999s", "line 2: expected a duration after `delay` (such as 50ms, 2s, 1m), found `99999999999999999999s`".to_owned()),
        ("on *\ncall", "line 2: expected a tool name after `call`, found the end of the line".to_owned()),
        ("on *\ncall id= read", "line 2: expected an id after `id=`, found `id=`".to_owned()),
        ("on *\ncall id=x", "line 2: expected a tool name after the id, found the end of the line".to_owned()),
        ("on *\nfile image/png", "line 2: expected the URL as a JSON string after the media type, found the end of the line".to_owned()),
        ("on *\nsource \"u\" title", "line 2: expected the title as a JSON string, found `title`".to_owned()),
        ("on *\nusage tokens=1", "line 2: expected input=, output=, reasoning=, cache_read= or cache_write=, found `tokens`".to_owned()),
        ("on *\nusage input", "line 2: expected key=value, found `input`".to_owned()),
        ("on *\nusage input=x", "line 2: expected a number of tokens, found `x`".to_owned()),
        ("on *\nfinish", "line 2: expected stop, length, content-filter, tool-calls or other after `finish`, found the end of the line".to_owned()),
        ("on *\nfinish error", "line 2: expected stop, length, content-filter, tool-calls or other after `finish`, found `error`".to_owned()),
        ("on *\nerror fatal \"x\"", "line 2: expected transient, permanent, auth, refused, overflow or attachment after `error`, found `fatal`".to_owned()),
        ("on *\nerror auth", "line 2: expected the message as a JSON string, found the end of the line".to_owned()),
        ("on *\nerror auth \"x\" retry_after=1s", "line 2: expected retry_after= only with `transient`, found `retry_after`".to_owned()),
        ("on *\nerror transient \"x\" retry_after=1", "line 2: expected a duration as retry_after=, found `1`".to_owned()),
        ("on *\nerror transient \"x\" times=x", "line 2: expected a number of attempts as times=, found `x`".to_owned()),
        ("on *\nerror transient \"x\" later=1", "line 2: expected retry_after= or times=, found `later`".to_owned()),
        ("on *\ncut now", "line 2: expected the end of the line, found `now`".to_owned()),
        ("on *\ncut\ntext \"x\"", "line 3: expected --- or `on` after `cut`, which ends the step, found `text \"x\"`".to_owned()),
        ("on *\npanic\ncut", "line 3: expected --- or `on` after `panic`, which ends the step, found `cut`".to_owned()),
        ("on *\nfinish stop\ntext \"x\"", "line 3: expected --- or `on` after `finish`, which ends the step, found `text \"x\"`".to_owned()),
        ("on *\nerror auth \"x\"\ndelay 1s", "line 3: expected --- or `on` after `error`, which ends the step, found `delay 1s`".to_owned()),
        ("model", "line 1: expected a model name after `model`, found the end of the line".to_owned()),
        ("model default", "line 1: expected a model name that is not declared yet, found `default`".to_owned()),
        ("model a\nmodel a", "line 2: expected a model name that is not declared yet, found `a`".to_owned()),
        ("model a context=big", "line 1: expected a number of tokens as context=, found `big`".to_owned()),
        ("model a images=yes", "line 1: expected images=true or images=false, found `yes`".to_owned()),
        ("model a price_input=x", "line 1: expected dollars per million tokens, found `x`".to_owned()),
        ("model a price_input=-1", "line 1: expected dollars per million tokens, found `-1`".to_owned()),
        ("model a price_input=inf", "line 1: expected dollars per million tokens, found `inf`".to_owned()),
        ("model a price_water=1", "line 1: expected price_input=, price_output=, price_cache_read= or price_cache_write=, found `price_water`".to_owned()),
        ("model a size=1", "line 1: expected context=, max_output=, images=, audio=, pdf=, thought= or price_…=, found `size`".to_owned()),
        ("model a thought=low,loud", "line 1: expected off, low, medium, high or max, found `loud`".to_owned()),
        ("on *\nmodel a", "line 2: expected `model` lines only before the first `on`, found `model`".to_owned()),
    ];
    for (text, message) in table {
        assert_eq!(error(text), message, "{text}");
    }
}

#[test]
fn an_error_with_times_may_be_followed_by_the_answer_of_a_later_attempt() {
    assert_eq!(step("error transient \"x\" times=1\ntext \"y\"").directives.len(), 2);
}

#[test]
fn a_long_line_is_shown_cut() {
    let ScriptError { found, .. } = Script::parse(&format!("on {}", "ä".repeat(500))).unwrap_err();
    assert_eq!(found, format!("`{}…`", "ä".repeat(60)));
}

/// Lines that are nearly right reach further into the parser than arbitrary text.
fn nearly_a_line() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("on"),
        Just("model"),
        Just("text"),
        Just("stream"),
        Just("call"),
        Just("error"),
        Just("usage"),
        Just("finish"),
        Just("delay"),
        Just("source"),
        Just("file"),
        Just("---"),
        Just("*"),
        Just("\"a\""),
        Just("\"a\"*"),
        Just("id="),
        Just("every"),
        Just("5ms"),
        Just("7"),
        Just("{\"a\":1}"),
        Just("{"),
        Just("transient"),
        Just("times=1"),
        Just("input=1"),
        Just("#"),
        Just("=")
    ];
    prop::collection::vec(prop_oneof![word.prop_map(str::to_owned), ".{0,4}"], 0..6)
        .prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic_and_errors_name_a_line_that_exists(text in prop_oneof![
        any::<String>(),
        prop::collection::vec(nearly_a_line(), 0..8).prop_map(|lines| lines.join("\n")),
    ]) {
        if let Err(error) = Script::parse(&text) {
            prop_assert!(error.line >= 1 && error.line <= text.lines().count(), "{error}");
        }
    }

    #[test]
    fn any_text_can_be_said(text in any::<String>()) {
        let line = format!("text {}", serde_json::to_string(&text).unwrap());
        prop_assert_eq!(directive(&line), Directive::Text(text));
    }
}

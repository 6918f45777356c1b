//! What keys fill into a form.

use super::*;
use agent_client_protocol_schema::v1::{
    BooleanPropertySchema, ElicitationPropertySchema, EnumOption, IntegerPropertySchema,
    MultiSelectPropertySchema, StringPropertySchema,
};

fn one(property: ElicitationPropertySchema) -> FormDialog {
    FormDialog::new(&ElicitationSchema::new().property("a".to_owned(), property, true))
}

fn press(form: &mut FormDialog, keys: &str) -> FormStep {
    keys.chars().fold(FormStep::Nothing, |_, key| {
        let code = match key {
            '\n' => KeyCode::Enter,
            'v' => KeyCode::Down,
            other => KeyCode::Char(other),
        };
        form.key(KeyEvent::from(code))
    })
}

fn content(answer: FormStep) -> serde_json::Value {
    let FormStep::Give(ElicitationAction::Accept(filled)) = answer else { panic!("{answer:?}") };
    serde_json::to_value(filled.content).unwrap()
}

fn choices() -> Vec<EnumOption> {
    ["red", "green", "blue"].map(|name| EnumOption::new(name, name)).into()
}

#[test]
fn a_line_is_typed_and_a_needed_one_is_asked_for() {
    let mut form = one(ElicitationPropertySchema::String(StringPropertySchema::new()));
    assert_eq!(press(&mut form, "\n"), FormStep::Nothing);
    let shown: Vec<_> = form.lines(ScreenTheme::PLAIN, 40).iter().map(ToString::to_string).collect();
    assert!(shown.contains(&"this one is needed".to_owned()), "{shown:?}");
    assert_eq!(content(press(&mut form, "hi\n")), serde_json::json!({ "a": "hi" }));
}

#[test]
fn one_of_several_is_chosen_by_number_or_by_moving() {
    let property = || ElicitationPropertySchema::String(StringPropertySchema::new().one_of(choices()));
    assert_eq!(content(press(&mut one(property()), "3\n"))["a"], "blue");
    assert_eq!(content(press(&mut one(property()), "vv\n"))["a"], "green");
}

/// Somebody who types a prompt while a form opens agrees to nothing.
#[test]
fn nothing_is_chosen_beforehand_and_letters_choose_nothing() {
    let property = StringPropertySchema::new().one_of(choices());
    let yes_or_no = ElicitationPropertySchema::Boolean(BooleanPropertySchema::new());
    for property in [ElicitationPropertySchema::String(property), yes_or_no] {
        let mut form = one(property);
        for keys in ["\n", "Fix the bug", "\n"] {
            assert_eq!(press(&mut form, keys), FormStep::Nothing, "{keys}");
            let shown: Vec<_> = form.lines(ScreenTheme::PLAIN, 60).iter().map(ToString::to_string).collect();
            assert!(shown.iter().any(|line| line.starts_with("choose ")), "{shown:?}");
        }
    }
    let with_default = StringPropertySchema::new().one_of(choices()).default_value("green".to_owned());
    assert_eq!(content(press(&mut one(ElicitationPropertySchema::String(with_default)), "\n"))["a"], "green");
}

#[test]
fn several_are_ticked() {
    let list = MultiSelectPropertySchema::titled(choices());
    let mut form = one(ElicitationPropertySchema::Array(list));
    assert_eq!(content(press(&mut form, " vv \n"))["a"], serde_json::json!(["red", "blue"]));
}

#[test]
fn numbers_stay_in_their_bounds() {
    let number = IntegerPropertySchema::new().minimum(1).maximum(5);
    let mut form = one(ElicitationPropertySchema::Integer(number));
    assert_eq!(press(&mut form, "9\n"), FormStep::Nothing);
    form.key(KeyEvent::from(KeyCode::Backspace));
    assert_eq!(content(press(&mut form, "4\n"))["a"], 4);
}

#[test]
fn yes_and_no_have_keys_and_fields_follow_each_other() {
    let schema = ElicitationSchema::new()
        .property("a".to_owned(), ElicitationPropertySchema::Boolean(BooleanPropertySchema::new()), true)
        .property("b".to_owned(), ElicitationPropertySchema::String(StringPropertySchema::new()), false);
    let mut form = FormDialog::new(&schema);
    assert_eq!(press(&mut form, "y\n"), FormStep::Nothing);
    assert_eq!(content(press(&mut form, "\n")), serde_json::json!({ "a": true }));
}

#[test]
fn it_can_be_declined_and_given_up() {
    let mut form = one(ElicitationPropertySchema::String(StringPropertySchema::new()));
    assert_eq!(form.key(KeyEvent::from(KeyCode::Esc)), FormStep::Give(ElicitationAction::Cancel));
    let decline = KeyEvent::new(KeyCode::Char('d'), KeyModifiers::CONTROL);
    assert_eq!(form.key(decline), FormStep::Give(ElicitationAction::Decline));
}

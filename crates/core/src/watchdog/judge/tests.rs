//! Verdicts over rules, approvals, containments and places, and what "always" makes of them.

use std::sync::Arc;

use super::super::rule::{ManifestRule, Rule, Rules};
use super::super::verdict::Reason;
use super::*;
use crate::ids::SessionId;
use crate::ports::tool::CommandAccess;
use crate::watchdog::Containment;

/// Where calls are judged; what a test does not say is ordinary.
struct Court {
    manifest: Vec<ManifestRule>,
    configuration: Vec<Rule>,
    session: Rules,
    approval: Approval,
    containment: Hold,
    workspace: Workspace,
    granted: Vec<PathBuf>,
}

impl Court {
    fn new() -> Self {
        Self {
            manifest: Vec::new(),
            configuration: Vec::new(),
            session: Rules::default(),
            approval: Approval::Ask,
            containment: Containment::Full.into(),
            workspace: Workspace {
                session_id: SessionId::new("ses_x"),
                root: "/w".into(),
                additional: Vec::new(),
                scratch: "/scratch/ses_x".into(),
                guarded: Arc::default(),
            },
            granted: Vec::new(),
        }
    }

    fn under(approval: Approval) -> Self {
        Self { approval, ..Self::new() }
    }

    fn rule(mut self, permission: &str, pattern: &str, action: Action) -> Self {
        self.configuration.push(Rule::new(permission, pattern, action));
        self
    }

    fn of_agent(mut self, permission: &str, pattern: &str, action: Action, firmness: Firmness) -> Self {
        self.manifest.push(ManifestRule { rule: Rule::new(permission, pattern, action), firmness });
        self
    }

    fn with_judge<T>(&self, tool: &str, accesses: &[Access], then: impl Fn(Judge<'_>, Matter<'_>) -> T) -> T {
        let ground = Ground { root: &self.workspace.root, home: None };
        let rules = Rulebook::new(&self.manifest, &self.configuration, &self.session, ground);
        let judge = Judge {
            rules: &rules,
            approval: self.approval,
            containment: &self.containment,
            workspace: &self.workspace,
            granted: &self.granted,
        };
        then(judge, Matter { tool, effect: Effect::Mutates, accesses })
    }

    fn judged(&self, accesses: &[Access]) -> Judged {
        self.with_judge("some", accesses, |judge, matter| judge.judge(&matter))
    }

    fn action(&self, accesses: &[Access]) -> Action {
        self.judged(accesses).verdict.action
    }

    fn always(&self, accesses: &[Access]) -> Option<super::super::Always> {
        self.with_judge("some", accesses, |judge, matter| judge.always(&matter))
    }

    /// The user has answered "always".
    fn answer_always(&mut self, accesses: &[Access], action: Action) -> String {
        let always = self.always(accesses).expect("offered");
        for rule in always.rules(action) {
            self.session.add(rule);
        }
        if action == Action::Allow {
            self.granted.extend(always.directories);
        }
        always.name
    }
}

fn reads(path: &str) -> Access {
    Access::ReadPath(path.into())
}

fn writes(path: &str) -> Access {
    Access::WritePath(path.into())
}

fn reaches(host: &str) -> Access {
    Access::Network { host: host.into() }
}

fn command(line: &str, nature: CommandNature, prefix: usize) -> Access {
    let words = line.split(' ').map(str::to_owned).collect();
    Access::Command(CommandAccess { words, directory: "/w".into(), nature, prefix })
}

fn runs(line: &str) -> Access {
    command(line, CommandNature::Effects, 0)
}

fn unclear() -> Access {
    command("$x", CommandNature::Unclear("a variable".into()), 0)
}

#[test]
fn the_reason_of_what_passes_is_what_it_touches() {
    let court = Court::new();
    let reason = |accesses: &[Access]| court.judged(accesses).verdict.in_words();
    assert_eq!(reason(&[reads("/w/a")]), "allow: reading within the session's directories passes");
    let looks = command("cat a", CommandNature::ReadOnly, 0);
    assert_eq!(reason(&[looks, reads("/w/a")]), "allow: the command is known to read only");
    let untouching = court.with_judge("todo", &[], |judge, matter| {
        judge.judge(&Matter { effect: Effect::ReadOnly, ..matter }).verdict.in_words()
    });
    assert_eq!(untouching, "allow: it touches nothing outside the conversation");
}

#[test]
fn each_approval_lets_more_pass() {
    let calls = [
        vec![],
        vec![reads("/w/a")],
        vec![command("ls", CommandNature::ReadOnly, 1)],
        vec![writes("/scratch/ses_x/a")],
        vec![writes("/w/a")],
        vec![writes("/w/a"), runs("make")],
        vec![runs("make")],
        vec![unclear()],
        vec![reaches("example.org")],
        vec![reads("/elsewhere/a")],
        vec![writes("/elsewhere/a")],
    ];
    let passing = |approval| {
        let court = Court::under(approval);
        let harmless = |judge: Judge<'_>, matter: Matter<'_>| {
            judge.judge(&Matter { effect: Effect::ReadOnly, ..matter }).verdict.action
        };
        let passes = |accesses: &&Vec<Access>| court.with_judge("todo", accesses, harmless) == Action::Allow;
        calls.iter().filter(passes).count()
    };
    assert_eq!(Approval::ALL.map(passing), [4, 5, calls.len()]);
}

#[test]
fn a_tool_that_changes_nobody_knows_what_is_asked_for() {
    assert_eq!(Court::new().action(&[]), Action::Ask);
    assert_eq!(Court::new().rule("some", "*", Action::Allow).action(&[]), Action::Allow);
    assert_eq!(Court::under(Approval::All).action(&[]), Action::Allow);
}

#[test]
fn the_strictest_of_everything_a_call_touches_decides() {
    let court = Court::new().rule("bash", "make *", Action::Allow).rule("edit", "lock", Action::Deny);
    assert_eq!(court.action(&[runs("make all"), reads("/w/a")]), Action::Allow);
    assert_eq!(court.action(&[runs("make all"), writes("/w/a")]), Action::Ask);
    let judged = court.judged(&[writes("/w/a"), writes("/w/lock"), runs("make all")]);
    assert_eq!(judged.verdict.action, Action::Deny);
    let Reason::Rule { scope, rule, .. } = judged.verdict.reason else { panic!("by a rule") };
    assert_eq!((scope, rule), (Scope::Configuration, Rule::new("edit", "lock", Action::Deny)));
}

#[test]
fn what_is_denied_stays_denied_whatever_is_approved() {
    for approval in Approval::ALL {
        let court = Court::under(approval)
            .rule("bash", "git push *", Action::Deny)
            .rule("bash", "make *", Action::Ask)
            .rule("edit", "/w/lock", Action::Deny)
            .rule("read", "/elsewhere/*", Action::Deny)
            .rule("edit", "*", Action::Allow);
        assert_eq!(court.action(&[runs("git push -f")]), Action::Deny);
        assert_eq!(court.action(&[writes("/w/lock")]), Action::Deny);
        assert_eq!(court.action(&[reads("/elsewhere/a")]), Action::Deny);
        assert_eq!(court.action(&[unclear()]), Action::Ask, "it may hide a push");
        let judged = court.judged(&[writes("/w/.git/hooks/pre-commit")]);
        assert_eq!(judged.verdict.action, Action::Deny, "no rule loosens what is protected");
        assert!(matches!(judged.verdict.reason, Reason::Guarded { .. }));
        let asks = if approval == Approval::All { Action::Allow } else { Action::Ask };
        assert_eq!(court.action(&[runs("make")]), asks);
    }
}

#[test]
fn a_pin_of_the_agent_is_loosened_by_nothing() {
    for approval in Approval::ALL {
        let mut court = Court::under(approval)
            .of_agent("bash", "git push *", Action::Ask, Firmness::Pinned)
            .of_agent("edit", "*", Action::Deny, Firmness::Pinned)
            .rule("bash", "git push origin", Action::Allow)
            .rule("edit", "/w/a", Action::Allow);
        court.session.add(Rule::new("bash", "git push origin", Action::Allow));
        assert_eq!(court.action(&[runs("git push origin")]), Action::Ask);
        assert_eq!(court.action(&[writes("/w/a")]), Action::Deny);
        assert_eq!(court.always(&[runs("git push origin")]), None, "it would be asked for again");
    }
}

#[test]
fn no_rule_lets_pass_what_nobody_understands() {
    let court = Court::new().rule("bash", "*", Action::Allow);
    assert_eq!(court.action(&[unclear()]), Action::Ask);
    assert_eq!(court.action(&[runs("make")]), Action::Allow);
    assert_eq!(court.always(&[unclear()]), None);
    assert_eq!(court.always(&[runs("make"), unclear()]), None);
}

#[test]
fn where_nothing_holds_commands_only_the_word_of_the_user_lets_one_pass() {
    let list = command("ls", CommandNature::ReadOnly, 1);
    for containment in [Containment::Reduced, Containment::None] {
        let mut court = Court { containment: containment.into(), ..Court::new() };
        let verdict = court.judged(std::slice::from_ref(&list)).verdict;
        assert_eq!(verdict.action, Action::Ask);
        assert!(matches!(verdict.reason, Reason::Containment { .. }));
        court = court.of_agent("bash", "*", Action::Allow, Firmness::Plain);
        assert_eq!(court.action(&[runs("make")]), Action::Ask, "a manifest is not the user");
        court = court.rule("bash", "make *", Action::Allow);
        assert_eq!(court.action(&[runs("make all")]), Action::Allow);
        court.answer_always(std::slice::from_ref(&list), Action::Allow);
        assert_eq!(court.action(std::slice::from_ref(&list)), Action::Allow);
        // Files are no commands.
        assert_eq!(court.action(&[reads("/w/a")]), Action::Allow);
    }
    for containment in [Containment::Full, Containment::ExplicitlyOff] {
        let court = Court { containment: containment.into(), ..Court::new() };
        assert_eq!(court.action(std::slice::from_ref(&list)), Action::Allow);
        assert_eq!(court.action(&[runs("make")]), Action::Ask);
    }
}

#[test]
fn the_network_is_granted_by_rules_and_never_by_an_approval() {
    let network = |court: &Court, accesses: &[Access]| court.judged(accesses).network;
    let fetch = [runs("curl example.org"), reaches("example.org")];
    let anywhere = [runs("git fetch"), reaches("*")];
    let all = Court::under(Approval::All);
    assert_eq!(all.action(&fetch), Action::Allow);
    assert_eq!(network(&all, &fetch), NetworkGrant::Withheld);
    let one = Court::new().rule("network", "example.org", Action::Allow);
    assert_eq!(network(&one, &fetch), NetworkGrant::GrantedByName);
    assert_eq!(network(&one, &anywhere), NetworkGrant::Withheld);
    assert_eq!(network(&one, &[runs("make")]), NetworkGrant::Withheld);
    let any = Court::new().rule("network", "*", Action::Allow);
    for call in [&fetch[..], &anywhere, &[runs("make")]] {
        assert_eq!(network(&any, call), NetworkGrant::Granted);
    }
    let but_one = any.rule("network", "evil.example", Action::Deny);
    assert_eq!(network(&but_one, &fetch), NetworkGrant::Granted);
    assert_eq!(network(&but_one, &anywhere), NetworkGrant::Withheld);
    assert_eq!(but_one.action(&anywhere), Action::Ask, "it may reach what is denied");
    assert_eq!(but_one.action(&[reaches("evil.example")]), Action::Deny);
    let asked = Court::new().judged(&anywhere);
    assert_eq!(asked.network_once_allowed(&anywhere), NetworkGrant::Granted);
    assert_eq!(asked.network_once_allowed(&[runs("make")]), NetworkGrant::Withheld);
}

#[test]
fn what_passes_as_reading_only_may_not_write() {
    let granted = |court: &Court, accesses: &[Access]| {
        assert_eq!(court.action(accesses), Action::Allow);
        court.judged(accesses).writes
    };
    let list = || command("ls", CommandNature::ReadOnly, 0);
    let court = Court::new();
    assert_eq!(granted(&court, &[list()]), WriteGrant::Withheld);
    assert_eq!(granted(&court, &[list(), writes("/scratch/ses_x/a")]), WriteGrant::Withheld);
    assert_eq!(granted(&court, &[reads("/w/a")]), WriteGrant::Granted, "no command");
    let reading = Court::new().rule("read", "/data/*", Action::Allow);
    assert_eq!(granted(&reading, &[list(), reads("/data/a")]), WriteGrant::Withheld, "no word for a change");
    let edits = Court::under(Approval::Edits);
    assert_eq!(granted(&edits, &[list()]), WriteGrant::Withheld);
    assert_eq!(granted(&edits, &[list(), writes("/w/a")]), WriteGrant::Granted);
    assert_eq!(granted(&Court::under(Approval::All), &[list()]), WriteGrant::Granted);
    let make = Court::new().rule("bash", "make *", Action::Allow);
    assert_eq!(granted(&make, &[list(), runs("make all")]), WriteGrant::Granted);
    let listing = Court::new().rule("bash", "ls *", Action::Allow);
    assert_eq!(granted(&listing, &[list()]), WriteGrant::Granted);
}

#[test]
fn a_host_is_granted_by_name_by_the_user_alone_and_without_a_wildcard() {
    let network = |court: &Court, hosts: &[&str]| {
        court.judged(&hosts.iter().map(|host| reaches(host)).collect::<Vec<_>>()).network
    };
    let literal = Court::new().rule("network", "localhost", Action::Allow);
    assert_eq!(network(&literal, &["localhost"]), NetworkGrant::GrantedByName);
    assert_eq!(network(&literal, &["localhost.evil.example"]), NetworkGrant::Withheld);
    assert_eq!(network(&literal, &["localhost", "other"]), NetworkGrant::Withheld);
    for pattern in ["*", "local*", "*host", "localhost*"] {
        let wild = Court::new().rule("network", pattern, Action::Allow);
        assert_eq!(network(&wild, &["localhost"]), NetworkGrant::Granted, "{pattern}");
    }
    let mixed = Court::new().rule("network", "*", Action::Allow).rule("network", "localhost", Action::Allow);
    assert_eq!(network(&mixed, &["localhost"]), NetworkGrant::GrantedByName);
    assert_eq!(network(&mixed, &["localhost", "other"]), NetworkGrant::Granted);
    let agent = Court::new().of_agent("network", "localhost", Action::Allow, Firmness::Plain);
    assert_eq!(network(&agent, &["localhost"]), NetworkGrant::Granted, "a manifest is not the user");
    let pinned = literal.of_agent("network", "*", Action::Ask, Firmness::Pinned);
    assert_eq!(network(&pinned, &["localhost"]), NetworkGrant::Withheld);

    let mut court = Court::new();
    let asked = court.judged(&[reaches("localhost")]);
    assert_eq!(asked.network, NetworkGrant::Withheld);
    assert_eq!(asked.network_once_allowed(&[reaches("localhost")]), NetworkGrant::GrantedByName);
    assert_eq!(court.answer_always(&[reaches("localhost")], Action::Allow), "reaching localhost");
    assert_eq!(network(&court, &["localhost"]), NetworkGrant::GrantedByName);
}

#[test]
fn a_rule_about_a_tool_speaks_for_what_it_touches_within_reach() {
    let court = Court::new().rule("some", "*", Action::Allow).rule("network", "evil.example", Action::Deny);
    assert_eq!(court.action(&[reaches("example.org")]), Action::Allow);
    assert_eq!(court.action(&[reaches("evil.example")]), Action::Deny);
    assert_eq!(court.action(&[reads("/elsewhere/a")]), Action::Ask);
    let denied = Court::new().rule("some", "*", Action::Deny);
    assert_eq!(denied.action(&[reads("/w/a")]), Action::Deny);
}

#[test]
fn always_covers_a_command_with_its_subcommand_and_no_other_word() {
    let test = command("cargo test --all", CommandNature::Effects, 2);
    for (action, other) in [(Action::Allow, Action::Ask), (Action::Deny, Action::Ask)] {
        let mut court = Court::new();
        assert_eq!(court.answer_always(std::slice::from_ref(&test), action), "`cargo test …`");
        for line in ["cargo test", "cargo test --all", "cargo test x y"] {
            assert_eq!(court.action(&[runs(line)]), action, "{line}");
        }
        for line in ["cargo testament", "cargo publish", "cargo"] {
            assert_eq!(court.action(&[runs(line)]), other, "{line}");
        }
    }
}

#[test]
fn always_without_known_words_covers_this_line_only() {
    let mut court = Court::new();
    assert_eq!(court.answer_always(&[runs("echo a*b\\c")], Action::Allow), "`echo a*b\\c`");
    assert_eq!(court.action(&[runs("echo a*b\\c")]), Action::Allow);
    assert_eq!(court.action(&[runs("echo aXb\\c")]), Action::Ask);
    assert_eq!(court.action(&[runs("echo a*b\\c d")]), Action::Ask);
}

#[test]
fn words_with_blanks_are_not_taken_for_several() {
    let words = ["cargo".to_owned(), "test --all".to_owned()].to_vec();
    let nature = CommandNature::Effects;
    let odd = Access::Command(CommandAccess { words, directory: "/w".into(), nature, prefix: 0 });
    let court = Court::new().rule("bash", "cargo test *", Action::Allow);
    assert_eq!(court.action(&[runs("cargo test --all")]), Action::Allow);
    assert_eq!(court.action(&[odd]), Action::Ask);
}

#[test]
fn always_covers_the_file_inside_and_the_directory_outside() {
    let mut court = Court::new();
    assert_eq!(court.answer_always(&[writes("/w/a")], Action::Allow), "changes to /w/a");
    assert_eq!(court.action(&[writes("/w/a")]), Action::Allow);
    assert_eq!(court.action(&[writes("/w/b")]), Action::Ask);
    assert_eq!(court.answer_always(&[reads("/else/x/a")], Action::Allow), "reading in /else/x");
    assert_eq!(court.action(&[reads("/else/x/deep/b")]), Action::Allow);
    assert_eq!(court.action(&[reads("/else/y/b")]), Action::Ask);
    assert_eq!(court.action(&[writes("/else/x/b")]), Action::Ask, "reading is not changing");
    court.approval = Approval::Edits;
    assert_eq!(court.action(&[writes("/else/x/b")]), Action::Ask, "a grant is no root");
    let writable = |court: &Court| court.with_judge("some", &[], |judge, _| judge.writable());
    assert_eq!(writable(&court), Vec::<PathBuf>::new());
    assert_eq!(court.answer_always(&[writes("/else/y/b")], Action::Allow), "changes in /else/y");
    assert_eq!(court.action(&[writes("/else/y/c")]), Action::Allow);
    assert_eq!(writable(&court), [PathBuf::from("/else/y")]);
}

#[test]
fn always_covers_all_that_was_asked_for_and_nothing_that_passes_anyway() {
    let call = [
        command("ls", CommandNature::ReadOnly, 1),
        command("cargo test", CommandNature::Effects, 2),
        command("cargo test -q", CommandNature::Effects, 2),
        reaches("*"),
        reads("/else/x/a"),
        writes("/else/y/a"),
    ];
    let mut court = Court::new();
    let judged = court.judged(&call);
    assert_eq!(judged.outside, [PathBuf::from("/else/x"), "/else/y".into()]);
    assert_eq!(judged.grants, [PathBuf::from("/else/y")], "a process may write where it is granted anything");
    assert_eq!(
        court.answer_always(&call, Action::Allow),
        "`cargo test …`, reaching any host, reading in /else/x, changes in /else/y"
    );
    assert_eq!(court.action(&call), Action::Allow);
    assert_eq!(court.session.iter().count(), 4);
}

#[test]
fn always_is_not_offered_where_it_would_not_hold_or_could_not_be_read() {
    let asked = Court::new().rule("bash", "git push *", Action::Ask);
    assert_eq!(asked.always(&[command("git push", CommandNature::Effects, 2)]), None, "the rule asks again");
    let many: Vec<Access> = (0..9).map(|number| writes(&format!("/w/{number}"))).collect();
    assert_eq!(Court::new().always(&many), None);
    assert!(Court::new().always(&many[..8]).is_some());
    let at_top = CommandAccess {
        words: vec!["ls".into()],
        directory: "/".into(),
        nature: CommandNature::ReadOnly,
        prefix: 1,
    };
    assert_eq!(Court::new().action(&[Access::Command(at_top.clone())]), Action::Ask);
    assert_eq!(Court::new().always(&[Access::Command(at_top)]), None, "not the whole machine");
}

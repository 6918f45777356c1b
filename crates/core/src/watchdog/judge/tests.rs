//! Verdicts over rules, approval levels, containments and places, and the meaning of "always" for them.

use std::sync::Arc;

use super::super::rule::{ManifestRule, Rule, Rules};
use super::super::verdict::Reason;
use super::*;
use crate::ids::SessionId;
use crate::ports::tool::CommandAccess;
use crate::watchdog::Containment;

/// Where calls are judged; everything that a test does not set is ordinary.
struct Court {
    commands: Commands,
    manifest: Vec<ManifestRule>,
    configuration: Vec<Rule>,
    session: Rules,
    approval: Approval,
    containment: HostContainment,
    workspace: Workspace,
    granted: Vec<PathBuf>,
}

impl Court {
    fn new() -> Self {
        Self {
            commands: Commands::Any,
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
                skills: Default::default(),
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
        let ground = PatternBase { root: &self.workspace.root, home: None };
        let rules = Rulebook::new(&self.manifest, &self.configuration, &self.session, ground);
        let judge = Judge {
            rules: &rules,
            commands: self.commands,
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
    Access::Command(CommandAccess { words, directory: "/w".into(), nature, prefix, input: None, why: None })
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
    assert_eq!(reason(&[reads("/w/a")]), "allow: reading within the workspace passes");
    let looks = command("cat a", CommandNature::ReadOnly, 0);
    assert_eq!(reason(&[looks, reads("/w/a")]), "allow: the command only reads");
    let untouching = court.with_judge("todo", &[], |judge, matter| {
        judge.judge(&Matter { effect: Effect::ReadOnly, ..matter }).verdict.in_words()
    });
    assert_eq!(untouching, "allow: it touches nothing outside the conversation");
}

/// Among several reasons to ask, the most informative one: a host, rather than that the command may change
/// something.
#[test]
fn a_question_names_the_host() {
    let court = Court::new();
    let reaches = |host: &str| Access::Network { host: host.to_owned() };
    let why = |accesses: &[Access]| court.judged(accesses).verdict.why_asked();
    assert_eq!(why(&[runs("curl a.org")]), "the command may change something");
    assert_eq!(why(&[runs("curl a.org"), reaches("a.org")]), "it reaches a.org, which is not granted");
    assert_eq!(why(&[runs("npm i"), reaches("*")]), "it needs the network, which is not granted");
    assert_eq!(why(&[unclear()]), "the command is unclear: a variable");
}

/// Rules that forbid match a command under each of its names; rules that allow match it only as written.
#[test]
fn what_is_forbidden_is_so_however_it_is_started() {
    let lines =
        ["git push", "X=1 git push", "/usr/bin/../bin/git push", "git -C sub push", "git --no-pager push"];
    for line in lines {
        let all = Court::under(Approval::All);
        let denied = all.rule("bash", "git push *", Action::Deny).action(&[runs(line)]);
        assert_eq!(denied, Action::Deny, "{line}");
        let harmless = [command(line, CommandNature::ReadOnly, 1)];
        assert_eq!(Court::new().action(&harmless), Action::Allow, "{line}");
        let asked = Court::new().rule("bash", "git push *", Action::Ask).action(&harmless);
        assert_eq!(asked, Action::Ask, "{line}");
        let allowed = Court::new().rule("bash", "git push *", Action::Allow).action(&[runs(line)]);
        assert_eq!(allowed == Action::Allow, line == "git push", "{line}");
    }
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
    let grants = 3;
    assert_eq!(Approval::ALL.map(passing), [4, 5, calls.len() - grants], "`all` grants no place and no host");
}

#[test]
fn under_all_a_command_may_reach_the_localhost_of_its_sandbox_and_gets_no_network() {
    let judged = |court: &Court, tool: &str, host: &str| {
        let accesses = [runs("curl x"), reaches(host)];
        court.with_judge(tool, &accesses, |judge, matter| judge.judge(&matter))
    };
    let all = || Court::under(Approval::All);
    for host in ["localhost", "127.0.0.1", "127.1.2.3", "[::1]", "::1", "0.0.0.0"] {
        let judged = judged(&all(), "bash", host);
        assert_eq!(
            (judged.verdict.action, judged.network),
            (Action::Allow, NetworkGrant::Withheld),
            "{host}"
        );
    }
    for (court, tool, host) in [
        (all(), "bash", "a.org"),
        (all(), "bash", "localhost.evil.example"),
        (all(), "web_fetch", "localhost"),
        (all().rule("network", "localhost", Action::Deny), "bash", "localhost"),
    ] {
        assert_eq!(judged(&court, tool, host).verdict.action, Action::Deny, "{tool} {host}");
    }
    assert_eq!(judged(&Court::new(), "bash", "localhost").verdict.action, Action::Ask);
}

#[test]
fn all_grants_nothing_that_lies_outside() {
    let write = [runs("cp a /else/x/b"), reads("/w/a"), writes("/else/x/b")];
    let fetch = [runs("curl example.org"), reaches("example.org")];
    let away = Access::Command(CommandAccess {
        words: vec!["make".into()],
        directory: "/else/x".into(),
        nature: CommandNature::Effects,
        prefix: 0,
        input: None,
        why: None,
    });
    let calls = [
        vec![writes("/else/x/b")],
        vec![reads("/else/x/b")],
        write.to_vec(),
        fetch.to_vec(),
        vec![away],
        vec![runs("npm i"), reaches("*")],
    ];
    for call in &calls {
        let court = Court::under(Approval::All);
        let judged = court.judged(call);
        assert_eq!(judged.verdict.action, Action::Deny, "{call:?}");
        assert!(judged.verdict.refusal().contains("`[[permissions]]`"), "{}", judged.verdict.refusal());
        let asks = Court::under(Approval::All)
            .rule("read", "/else/*", Action::Ask)
            .rule("edit", "/else/*", Action::Ask)
            .rule("network", "*", Action::Ask);
        assert_eq!(asks.action(call), Action::Deny, "a rule that asks is no grant either: {call:?}");
        let off = Court { containment: Containment::ExplicitlyOff.into(), ..Court::under(Approval::All) };
        assert_eq!(
            off.action(call),
            Action::Allow,
            "nothing holds anything where the user said so: {call:?}"
        );
    }
    let granted = Court::under(Approval::All)
        .rule("read", "/else/*", Action::Allow)
        .rule("edit", "/else/x/b", Action::Allow)
        .rule("network", "*", Action::Allow);
    for call in &calls {
        assert_eq!(granted.action(call), Action::Allow, "{call:?}");
    }
    assert_eq!(granted.judged(&write).grants, [PathBuf::from("/else/x/b")], "a file is not its directory");
    let wider = granted.rule("edit", "/else/x/*", Action::Allow);
    assert_eq!(wider.judged(&write).grants, [PathBuf::from("/else/x")]);
}

#[test]
fn no_command_is_granted_what_others_share() {
    for path in ["/tmp", "/run", "/", "/proc/sys/x", "/dev/sda", "/run/user/1/x", "/etc"] {
        let call = [runs("cp a there"), writes(path)];
        assert_eq!(Court::new().judged(&call).grants, Vec::<PathBuf>::new(), "{path}");
        assert_eq!(Court::new().always(&call), None, "{path}");
    }
    let call = [runs("cp a there"), writes("/tmp/a")];
    assert_eq!(Court::new().judged(&call).grants, [PathBuf::from("/tmp/a")]);
    let always = Court::new().always(&call).unwrap();
    assert_eq!(always.directories, [PathBuf::from("/tmp/a")]);
}

#[test]
fn an_agent_whose_commands_only_read_runs_no_other() {
    let list = command("ls", CommandNature::ReadOnly, 1);
    for approval in Approval::ALL {
        let mut court = Court { commands: Commands::OnlyReading, ..Court::under(approval) }
            .rule("bash", "*", Action::Allow)
            .rule("edit", "*", Action::Allow)
            .rule("network", "*", Action::Allow);
        court.session.add(Rule::new("bash", "make", Action::Allow));
        let bash =
            |accesses: &[Access]| court.with_judge("bash", accesses, |judge, matter| judge.judge(&matter));
        let listed = bash(std::slice::from_ref(&list));
        assert_eq!((listed.verdict.action, listed.writes), (Action::Allow, WriteGrant::Withheld));
        for call in [
            vec![runs("make")],
            vec![unclear()],
            vec![list.clone(), writes("/w/a")],
            vec![list.clone(), reaches("example.org")],
        ] {
            let verdict = bash(&call).verdict;
            assert_eq!(verdict.action, Action::Deny, "{call:?}");
            assert!(verdict.refusal().contains("only commands that read"), "{}", verdict.refusal());
        }
        // Other tools are judged as usual.
        assert_eq!(court.action(&[reaches("example.org")]), Action::Allow);
    }
}

/// For each kind of agent, calls pass, ask and are refused as the prompt says.
#[test]
fn the_prompt_says_what_is_judged() {
    use crate::environment::{Facts, SessionEnvironment};
    let containments =
        [Containment::Full, Containment::Reduced, Containment::None, Containment::ExplicitlyOff];
    for (containment, approval) in
        containments.into_iter().flat_map(|held| Approval::ALL.map(|said| (held, said)))
    {
        if containment.permit(approval).is_err() {
            continue;
        }
        for commands in [Commands::Any, Commands::OnlyReading] {
            let containment_here = containment.into();
            let mut court = Court { commands, containment: containment_here, ..Court::under(approval) };
            if commands == Commands::OnlyReading {
                court = court.of_agent("edit", "*", Action::Deny, Firmness::Pinned);
            }
            let said = SessionEnvironment::of(Facts {
                platform: "linux",
                workspace: &court.workspace,
                git: None,
                uncommitted: None,
                date: "today",
                model: &crate::ports::store::ModelRef::new("p", "m"),
                containment: Some(containment),
                approval,
                people: crate::hub::People::Present,
            })
            .rules(commands);
            let action = |access: Access| {
                court.with_judge("bash", &[access], |judge, matter| judge.judge(&matter).verdict.action)
            };
            let looks = action(command("ls", CommandNature::ReadOnly, 1));
            let nothing_asks = said.contains("nothing asks");
            assert_eq!(
                looks == Action::Allow,
                nothing_asks || said.contains("known to only read pass"),
                "{said}"
            );
            let makes = action(runs("make"));
            assert_eq!(makes == Action::Ask, said.contains("all else asks"), "{said}");
            assert_eq!(
                makes == Action::Deny,
                said.contains("edits and") || said.contains("edits, commands"),
                "{said}"
            );
            let redirects = action(writes("/scratch/ses_x/a"));
            assert_eq!(
                redirects == Action::Deny,
                said.contains("redirections into files are refused"),
                "{said}"
            );
            assert_eq!(redirects == Action::Deny, !said.contains("$TMPDIR"), "{said}");
            let outside = court.action(&[reads("/other/a")]);
            assert_eq!(outside == Action::Deny, said.contains("outside the grant"), "{said}");
            assert_eq!(
                outside == Action::Ask,
                said.contains("all else asks") || said.contains("paths outside,"),
                "{said}"
            );
        }
    }
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
        // Files are not commands.
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
    assert_eq!(all.action(&fetch), Action::Deny);
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

/// A command that writes there would pass as an edit, and no later check looks at it.
#[test]
fn what_belongs_to_git_is_no_edit_of_the_workspace() {
    let edits = Court::under(Approval::Edits);
    assert_eq!(edits.action(&[writes("/w/a")]), Action::Allow);
    for path in ["/w/.git/commondir", "/w/lib/.git/HEAD", "/w/lib/.GIT/remotes/x", "/w/sub/.git"] {
        assert_eq!(edits.action(&[writes(path)]), Action::Ask, "{path}");
    }
    assert_eq!(edits.action(&[writes("/w/.gitignore")]), Action::Allow);
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
            assert_eq!(court.action(&[command(line, CommandNature::Effects, 2)]), action, "{line}");
        }
        for (line, prefix) in
            [("cargo testament", 2), ("cargo publish", 2), ("cargo", 1), ("cargo test x", 1)]
        {
            let expected =
                if action == Action::Deny && line == "cargo test x" { Action::Deny } else { other };
            assert_eq!(court.action(&[command(line, CommandNature::Effects, prefix)]), expected, "{line}");
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
    let directory = "/w".into();
    let odd = Access::Command(CommandAccess { words, directory, nature, prefix: 0, input: None, why: None });
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
        input: None,
        why: None,
    };
    assert_eq!(Court::new().action(&[Access::Command(at_top.clone())]), Action::Ask);
    assert_eq!(Court::new().always(&[Access::Command(at_top)]), None, "not the whole machine");
}

#[test]
fn always_without_known_words_covers_this_input_only() {
    let with_input = |input: Option<&str>| {
        Access::Command(CommandAccess {
            words: vec!["psql".into(), "db".into()],
            directory: "/w".into(),
            nature: CommandNature::Effects,
            prefix: 0,
            input: input.map(str::to_owned),
            why: None,
        })
    };
    let mut court = Court::new();
    assert_eq!(
        court.answer_always(&[with_input(Some("<<< 'select 1'"))], Action::Allow),
        "`psql db <<< 'select 1'`"
    );
    assert_eq!(court.action(&[with_input(Some("<<< 'select 1'"))]), Action::Allow);
    assert_eq!(court.action(&[with_input(Some("<<< '\\! sh'"))]), Action::Ask);
    assert_eq!(court.action(&[with_input(None)]), Action::Ask);
    let long = "x".repeat(crate::limits::RULE_CHARACTERS);
    assert_eq!(court.always(&[with_input(Some(&long))]), None, "nobody reads that much");
}

#[test]
fn all_edits_can_be_allowed_at_once_and_nothing_else() {
    let mut court = Court::new().rule("edit", "migrations/*", Action::Deny);
    court.workspace.additional = vec!["/lib/x".into()];
    let edits = |court: &Court, accesses: &[Access]| {
        court.with_judge("some", accesses, |judge, matter| judge.always_edits(&matter))
    };
    for other in [
        vec![],
        vec![reads("/w/a")],
        vec![runs("rm a"), writes("/w/a")],
        vec![writes("/else/x/a")],
        vec![writes("/w/a"), reaches("example.org")],
        vec![writes("/w/.git/config")],
    ] {
        assert_eq!(edits(&court, &other), None, "{other:?}");
    }
    let always = edits(&court, &[writes("/w/a"), writes("/lib/x/b")]).unwrap();
    assert_eq!(always.name, "all edits in this workspace, for this session");
    assert!(always.directories.is_empty());
    always.rules(Action::Allow).into_iter().for_each(|rule| court.session.add(rule));
    for (path, expected) in [
        ("/w/deep/b", Action::Allow),
        ("/lib/x/c", Action::Allow),
        ("/w/migrations/1.sql", Action::Deny),
        ("/w/.git/hooks/pre-commit", Action::Deny),
        ("/else/x/a", Action::Ask),
    ] {
        assert_eq!(court.action(&[writes(path)]), expected, "{path}");
    }
    assert_eq!(court.action(&[runs("rm a"), writes("/w/a")]), Action::Ask, "a command is a command");
}

mod offers {
    use proptest::prelude::*;

    use super::*;

    fn any_command() -> impl Strategy<Value = CommandAccess> {
        let word = prop::sample::select(vec!["a", "b", "-x", "a b", "*", "c\\"]);
        let words = prop::collection::vec(word.prop_map(str::to_owned), 1..4);
        let input = prop::option::of(prop::sample::select(vec!["< x", "<<< y", "*"]));
        (words, 0_usize..4, input).prop_map(|(words, prefix, input)| CommandAccess {
            prefix: prefix.min(words.len()),
            words,
            directory: "/w".into(),
            nature: CommandNature::Effects,
            input: input.map(str::to_owned),
            why: None,
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        /// An "always" answer lets a command pass only if exactly the same answer would have been offered for
        /// that command.
        #[test]
        fn an_answer_covers_only_what_offers_the_same(one in any_command(), other in any_command()) {
            let mut court = Court::new();
            let offered = |court: &Court, command: &CommandAccess| court.always(&[Access::Command(command.clone())]);
            let Some(always) = offered(&court, &one) else { return Ok(()) };
            // Words and an input may look alike in the name of an offer, but are still told apart.
            let alike = one.prefix > 0 || one.input == other.input;
            let same = alike && offered(&court, &other).is_some_and(|offer| offer.name == always.name);
            court.answer_always(&[Access::Command(one.clone())], Action::Allow);
            prop_assert_eq!(court.action(&[Access::Command(one.clone())]), Action::Allow);
            let passes = court.action(&[Access::Command(other.clone())]) == Action::Allow;
            prop_assert_eq!(passes, same, "{:?} {:?}", one, other);
            if one.prefix == 0 && passes {
                prop_assert_eq!((one.line(), one.input), (other.line(), other.input));
            }
        }

        /// An answer about a command does not cover a file that the next command also reads.
        #[test]
        fn an_answer_covers_no_file_that_was_not_read(
            one in any_command(),
            file in prop::sample::select(vec!["/w/a", "/w/.env", "/w/deep/key.pem", "/etc/hostname", "/w/notes/x"]),
        ) {
            let mut court = Court::new().rule("read", "notes/*", Action::Ask);
            let command = Access::Command(one);
            let alone = court.action(&[reads(file)]);
            prop_assert_eq!(alone == Action::Allow, file == "/w/a");
            if court.always(std::slice::from_ref(&command)).is_some() {
                court.answer_always(std::slice::from_ref(&command), Action::Allow);
                prop_assert_eq!(court.action(&[command, reads(file)]), alone);
            }
        }
    }
}

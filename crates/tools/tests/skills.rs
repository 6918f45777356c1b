//! Which skills and commands are found, what of a hostile repository is not, and what the `skill` tool gives.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use attache_core::ports::tool::{Access, Workspace};
use attache_core::ports::{FoundKnowledge, Surroundings};
use attache_core::scope::{AccessReach, Guarded, reach};
use attache_core::watchdog::{Approval, PatternBase, ReadRules, Rulebook, Rules};
use attache_tools::MachineSurroundings;
use serde_json::json;

use crate::trial::Trial;

/// A user with a home and a directory for attache, beside the root.
struct Places {
    trial: Trial,
    home: PathBuf,
    own: PathBuf,
}

impl Places {
    fn new() -> Self {
        let mut trial = Trial::new();
        let (home, own) = (trial.base.join("home"), trial.base.join("own"));
        std::fs::create_dir_all(&home).unwrap();
        let guarded =
            Guarded::new(Some(home.clone()), vec![own.clone()]).with_readable(vec![own.join("skills")]);
        trial.workspace = Arc::new(Workspace { guarded: Arc::new(guarded), ..(*trial.workspace).clone() });
        Self { trial, home, own }
    }

    async fn found(&self, configured: &[PathBuf]) -> FoundKnowledge {
        let workspace = &self.trial.workspace;
        let ground = PatternBase { root: &workspace.root, home: workspace.guarded.home() };
        let rules = Arc::new(Rulebook::new(&[], &[], &Rules::default(), ground));
        let rules = ReadRules::of(std::slice::from_ref(&rules), Approval::Ask);
        let surroundings = MachineSurroundings::new(Arc::clone(&self.trial.sandbox), Some(self.own.clone()))
            .with_skill_paths(configured.to_vec());
        surroundings.knowledge(Arc::clone(workspace), rules).await
    }

    /// The same trial with what was found.
    async fn know(&mut self, configured: &[PathBuf]) {
        let skills = Arc::new(self.found(configured).await.skills);
        self.trial.workspace = Arc::new(Workspace { skills, ..(*self.trial.workspace).clone() });
    }
}

fn put(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn put_skill(collection: &Path, name: &str, description: &str) {
    let text =
        format!("---\nname: {name}\ndescription: {description}\n---\nBody of {name}, {description}.\n");
    put(&collection.join(name).join("SKILL.md"), &text);
}

fn listed(found: &FoundKnowledge) -> Vec<(String, String)> {
    found.skills.list.iter().map(|skill| (skill.name.to_string(), skill.description.to_string())).collect()
}

/// Keys of other programs are theirs; a slip is told, and what it was meant for where that is missed.
#[tokio::test]
async fn a_key_that_is_nearly_a_known_one_is_told_with_its_line() {
    let place = Places::new();
    let put = |name: &str, text: &str| put(&place.own.join(name), text);
    put(
        "skills/a/SKILL.md",
        "---\nname: a\ndescription: d\nnmae: b\nlicense: MIT\nallowed-tools: Read\n---\nx\n",
    );
    put("skills/b/SKILL.md", "---\nname: b\ndescripton: d\n---\nx\n");
    put("commands/fix.md", "---\ndescripton: d\nargument-hints: x\nversion: 1\n---\nFix $1\n");
    let found = place.found(&[]).await;
    let told = found.notes.join("\n");
    for words in [
        "a/SKILL.md: line 4: there is no key `nmae` (did you mean `name`?)",
        "fix.md: line 2: there is no key `descripton` (did you mean `description`?)",
        "fix.md: line 3: there is no key `argument-hints` (did you mean `argument-hint`?)",
    ] {
        assert!(told.contains(words), "{words}\n{told}");
    }
    assert_eq!(found.notes.len(), 3, "{told}");
    let left_out = found.left_out.join("\n");
    assert!(left_out.contains("b/SKILL.md: line 3: `description` is missing"), "{left_out}");
    assert_eq!(found.templates.len(), 1);
}

fn pair(name: &str, description: &str) -> (String, String) {
    (name.to_owned(), description.to_owned())
}

#[tokio::test]
async fn the_nearest_skill_of_a_name_wins_and_the_others_are_told_of() {
    let places = Places::new();
    let Places { trial, home, own } = &places;
    let configured = trial.base.join("team");
    put_skill(&trial.root.join(".agents/skills"), "a", "root");
    put_skill(&trial.root.join(".claude/skills"), "b", "root");
    put_skill(&trial.base.join(".agents/skills"), "a", "above");
    put_skill(&trial.base.join(".agents/skills"), "c", "above");
    put_skill(&home.join(".claude/skills"), "c", "home");
    put_skill(&home.join(".claude/skills"), "d", "home");
    put_skill(&own.join("skills"), "e", "own");
    put_skill(&configured, "f", "configured");
    // A copy and a link are the same skill.
    put_skill(&home.join(".agents/skills"), "b", "root");
    symlink(own.join("skills/e"), home.join(".agents/skills/e")).unwrap();
    let found = places.found(&[configured]).await;
    let expected = [
        pair("a", "root"),
        pair("b", "root"),
        pair("c", "above"),
        pair("e", "own"),
        pair("d", "home"),
        pair("f", "configured"),
    ];
    assert_eq!(listed(&found), expected, "{:?}", found.left_out);
    let [first, second] = found.left_out.as_slice() else { panic!("{:?}", found.left_out) };
    assert!(first.contains("/.agents/skills/a/SKILL.md: there is a skill `a` already: "), "{first}");
    assert!(second.contains("/.claude/skills/c/SKILL.md: there is a skill `c` already: "), "{second}");
}

/// Whoever made the repository chose its files and links: none brings what may not be read into a prompt, nor
/// opens a directory.
#[tokio::test]
async fn nothing_hidden_or_outside_becomes_a_skill_or_a_command() {
    const CANARY: &str = "---\nname: canary\ndescription: canary-77\n---\ncanary-77";
    let places = Places::new();
    let (root, home) = (&places.trial.root, &places.home);
    put(&home.join(".ssh/config"), CANARY);
    put(&home.join("private/SKILL.md"), CANARY);
    put(&root.join(".env"), CANARY);
    let skills = root.join(".agents/skills");
    for (name, target) in [("one", home.join(".ssh/config")), ("two", root.join(".env"))] {
        std::fs::create_dir_all(skills.join(name)).unwrap();
        symlink(target, skills.join(name).join("SKILL.md")).unwrap();
    }
    symlink(home.join("private"), skills.join("three")).unwrap();
    std::fs::create_dir_all(root.join(".claude")).unwrap();
    symlink(home, root.join(".claude/skills")).unwrap();
    let commands = root.join(".attache/commands");
    std::fs::create_dir_all(&commands).unwrap();
    symlink(home.join(".ssh/config"), commands.join("four.md")).unwrap();
    symlink(home.join("private"), commands.join("five")).unwrap();
    // A directory above the root leads elsewhere.
    std::fs::create_dir_all(places.trial.base.join(".claude")).unwrap();
    symlink(home, places.trial.base.join(".claude/skills")).unwrap();
    let pipe = skills.join("six/SKILL.md");
    std::fs::create_dir_all(pipe.parent().unwrap()).unwrap();
    let (mode, kind) = (rustix::fs::Mode::RUSR, rustix::fs::FileType::Fifo);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
    let found = places.found(&[]).await;
    assert!(found.skills.is_empty() && found.templates.is_empty(), "{found:?}");
    assert!(found.skills.directories.is_empty() && !format!("{found:?}").contains("canary"), "{found:?}");
    for refused in ["one", "two", "three", "four.md", "five/SKILL.md", "six"] {
        assert!(found.left_out.iter().any(|told| told.contains(refused)), "{refused}: {:?}", found.left_out);
    }
}

#[tokio::test]
async fn a_file_with_bad_front_matter_is_left_out_with_its_line() {
    let places = Places::new();
    put(&places.trial.root.join(".agents/skills/x/SKILL.md"), "---\nname: x\n- y\n---\nBody");
    put(&places.trial.root.join(".attache/commands/y.md"), "---\nmodel: [z]\n---\nBody");
    put(&places.trial.root.join(".attache/commands/with blank.md"), "Body");
    put_skill(&places.trial.root.join(".agents/skills"), "good", "good");
    let found = places.found(&[]).await;
    assert_eq!(listed(&found), [pair("good", "good")]);
    let told = found.left_out.join("\n");
    assert!(told.contains(".agents/skills/x/SKILL.md: line 3: "), "{told}");
    assert!(told.contains(".attache/commands/y.md: line 2: "), "{told}");
    assert!(told.contains("with blank.md: its name can't be typed"), "{told}");
}

#[tokio::test]
async fn commands_have_the_names_of_their_directories_and_only_the_users_own_choose_who_answers() {
    let places = Places::new();
    let (root, own) = (&places.trial.root, &places.own);
    let choosing = "---\nagent: plan\nmodel: a/b\n---\nLook at $1";
    put(&root.join(".attache/commands/git/pr/new.md"), choosing);
    put(&root.join(".attache/commands/fix.md"), "Fix it");
    put(&root.join(".claude/commands/look.md"), choosing);
    put(&root.join(".claude/commands/notes.txt"), "no command");
    put(&own.join("commands/mine.md"), choosing);
    put(&own.join("commands/fix.md"), "Other");
    let found = places.found(&[]).await;
    let names: Vec<(&str, bool)> =
        found.templates.iter().map(|template| (&*template.name, template.choice.is_empty())).collect();
    assert_eq!(names, [("fix", true), ("git:pr:new", true), ("look", true), ("mine", false)]);
    let [told] = found.left_out.as_slice() else { panic!("{:?}", found.left_out) };
    assert!(told.contains("own/commands/fix.md: there is a command `/fix` already: "), "{told}");
}

#[tokio::test]
async fn a_skill_is_loaded_once_and_files_beside_it_are_readable() {
    let mut places = Places::new();
    let (skills, kept) = (places.home.join(".agents/skills"), places.trial.base.join("kept"));
    put_skill(&skills, "pdf", "Reads PDFs");
    put(&skills.join("pdf/more.md"), "more about it\n");
    put_skill(&places.own.join("skills"), "own", "Of attache");
    put(&places.own.join("skills/own/more.md"), "more of our own\n");
    put_skill(&kept, "linked", "Elsewhere");
    put(&kept.join("linked/more.md"), "more elsewhere\n");
    put(&kept.join("secret.md"), "not of a skill\n");
    symlink(kept.join("linked"), skills.join("linked")).unwrap();
    places.know(&[]).await;
    let trial = &places.trial;
    let (data, presentation) = trial.done("skill", json!({ "name": "pdf" })).await;
    let expected = format!(
        "<skill_content name=\"pdf\">\nBody of pdf, Reads PDFs.\n</skill_content>\nFiles that it names are in {}: \
         read them there when you need them.",
        skills.join("pdf").display()
    );
    assert_eq!(data, json!(expected));
    assert_eq!(presentation.title, "Skill `pdf`");
    std::fs::remove_file(skills.join("pdf/SKILL.md")).unwrap();
    assert_eq!(trial.done("skill", json!({ "name": "/pdf" })).await.0, json!(expected), "it is kept");
    for path in
        [skills.join("pdf/more.md"), places.own.join("skills/own/more.md"), skills.join("linked/more.md")]
    {
        let plan = trial.plan("read", json!({ "path": path })).await.unwrap();
        for access in &plan.accesses {
            assert_eq!(reach(access, &trial.workspace, &[]), AccessReach::Inside, "{access:?}");
        }
        let read = trial.done("read", json!({ "path": path })).await.0;
        assert!(read.as_str().unwrap().starts_with("1:more"), "{read}");
        assert_ne!(reach(&Access::WritePath(path), &trial.workspace, &[]), AccessReach::Inside);
    }
    let beside = Access::ReadPath(kept.join("secret.md"));
    assert!(matches!(reach(&beside, &trial.workspace, &[]), AccessReach::Outside(_)));
    trial.failed("read", json!({ "path": kept.join("secret.md") })).await;
    let error = trial.plan("skill", json!({ "name": "pfd" })).await.unwrap_err();
    assert!(error.contains("there is no skill `pfd`; there are ") && error.contains("pdf"), "{error}");
    assert!(!error.contains("release-notes"), "only skills that there are: {error}");
    assert_eq!(trial.done("skill", json!({ "name": "PDF" })).await.0, json!(expected));
}

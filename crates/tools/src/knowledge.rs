//! Finds which files of the user and of the project add skills and commands to a session. Other modules read
//! those files.

use std::path::{Path, PathBuf};

use attache_core::instructions;
use attache_core::ports::FoundKnowledge;
use attache_core::ports::tool::Workspace;
use attache_core::watchdog::ReadRules;

use crate::limits::LEFT_OUT_TOLD;
use crate::provenance::{FileOrigin, TextRules};
use crate::skills::SkillReader;
use crate::templates::TemplateReader;

/// What a user has for all projects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UserPlaces<'a> {
    /// attache's own directory, with `skills` and `commands` in it.
    pub(crate) directory: Option<&'a Path>,
    /// Further directories of skills.
    pub(crate) skill_paths: &'a [PathBuf],
}

/// A directory that holds skills or commands.
#[derive(Clone, Debug)]
pub(crate) struct KnowledgePlace {
    pub(crate) directory: PathBuf,
    pub(crate) origin: FileOrigin,
    /// The directory that it belongs to.
    pub(crate) of: PathBuf,
}

/// Places of skills below a directory, in order of precedence.
const SKILLS_OF_PROJECT: [&str; 2] = [".agents/skills", ".claude/skills"];

/// Finds and reads them. Blocks.
pub(crate) fn look(workspace: &Workspace, rules: Option<&ReadRules>, own: UserPlaces<'_>) -> FoundKnowledge {
    let rules = TextRules::new(workspace, rules);
    let mut skills = SkillReader::new(&rules);
    skill_places(workspace, own).iter().for_each(|place| skills.place(place));
    let mut templates = TemplateReader::new(&rules);
    template_places(workspace, own).iter().for_each(|(place, source)| templates.place(place, *source));
    let (skills, mut left_out) = skills.done();
    let (templates, more) = templates.done();
    left_out.extend(more);
    let of_skills = skills.list.iter().map(|skill| (&skill.path, skill.slips.as_slice()));
    let of_commands = templates.iter().map(|(template, path)| (path, template.slips.as_slice()));
    let notes = of_skills
        .chain(of_commands)
        .flat_map(|(path, slips)| slips.iter().map(move |slip| format!("{}: {slip}", path.display())))
        .collect();
    let templates = templates.into_iter().map(|(template, _)| template).collect();
    FoundKnowledge { skills, templates, left_out: some(left_out), notes: some(notes) }
}

/// As many as can be read.
fn some(mut told: Vec<String>) -> Vec<String> {
    if told.len() > LEFT_OUT_TOLD {
        let more = told.len() - LEFT_OUT_TOLD;
        told.truncate(LEFT_OUT_TOLD);
        told.push(format!("and {more} more"));
    }
    told
}

/// The nearest first: the root, the directories above it, the user's home, attache's own, the configured ones.
fn skill_places(workspace: &Workspace, own: UserPlaces<'_>) -> Vec<KnowledgePlace> {
    let home = workspace.guarded.home();
    let mut holders: Vec<(&Path, FileOrigin)> = instructions::directories(&workspace.root)
        .into_iter()
        .rev()
        .map(|directory| match directory {
            _ if directory == workspace.root => (directory, FileOrigin::Root),
            _ if Some(directory) == home => (directory, FileOrigin::User),
            _ => (directory, FileOrigin::Above),
        })
        .collect();
    holders
        .extend(home.filter(|home| !workspace.root.starts_with(home)).map(|home| (home, FileOrigin::User)));
    let mut places: Vec<KnowledgePlace> = holders
        .into_iter()
        .flat_map(|(of, origin)| {
            SKILLS_OF_PROJECT.map(|name| KnowledgePlace {
                directory: of.join(name),
                origin,
                of: of.to_owned(),
            })
        })
        .collect();
    let of_user = own.directory.map(|directory| directory.join("skills"));
    places.extend(of_user.iter().chain(own.skill_paths).map(|directory| KnowledgePlace {
        directory: directory.clone(),
        origin: FileOrigin::User,
        of: directory.clone(),
    }));
    places
}

/// Who wrote commands, and for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TemplateSource {
    /// The user, for attache.
    User,
    /// The project, for attache.
    Project,
    /// The project, for several agents: its names of models and agents are not ours.
    Foreign,
}

/// The project's first: they say more about the work at hand.
fn template_places(workspace: &Workspace, own: UserPlaces<'_>) -> Vec<(KnowledgePlace, TemplateSource)> {
    let of_project = |name: &str, source: TemplateSource| {
        let (directory, of) = (workspace.root.join(name), workspace.root.clone());
        (KnowledgePlace { directory, origin: FileOrigin::Root, of }, source)
    };
    let mut places = vec![
        of_project(".attache/commands", TemplateSource::Project),
        of_project(".claude/commands", TemplateSource::Foreign),
    ];
    places.extend(own.directory.map(|directory| {
        let of_user = directory.join("commands");
        let place = KnowledgePlace { directory: of_user.clone(), origin: FileOrigin::User, of: of_user };
        (place, TemplateSource::User)
    }));
    places
}

//! No text makes the reader of patches panic or change its mind, and what a patch would change are plain paths.
//! Reads the files in `ground`, changes nothing.
#![no_main]

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use attache_core::ids::SessionId;
use attache_core::ports::Tool;
use attache_core::ports::tool::{Access, Site, Workspace};
use attache_tools::Equipment;
use libfuzzer_sys::fuzz_target;
use serde_json::json;
use tokio::runtime::Runtime;

struct World {
    runtime: Runtime,
    tool: Arc<dyn Tool>,
    site: Site,
}

static WORLD: LazyLock<World> = LazyLock::new(|| {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/ground"));
    let workspace = Workspace {
        session_id: SessionId::new("ses_1"),
        scratch: root.join("scratch"),
        root,
        additional: Vec::new(),
        guarded: Arc::default(),
        skills: Default::default(),
    };
    let tools = attache_tools::builtin(Equipment::bare());
    World {
        runtime: tokio::runtime::Builder::new_current_thread().build().expect("a runtime"),
        tool: tools.into_iter().find(|tool| &*tool.spec().id == "apply_patch").expect("the tool"),
        site: Site {
            workspace: Arc::new(workspace),
            granted: Arc::new([]),
            judged: None,
            writes: Arc::default(),
            closed: None,
            client: None,
            seen: Arc::default(),
        },
    }
});

fuzz_target!(|patch: &str| {
    let World { runtime, tool, site } = &*WORLD;
    let plan = || runtime.block_on(tool.plan(&json!({ "patch": patch }), site));
    let planned = plan();
    assert_eq!(format!("{planned:?}"), format!("{:?}", plan()), "planned again");
    match planned {
        Err(problem) => assert!(problem.starts_with("apply_patch: "), "{problem}"),
        Ok(plan) => {
            assert!(!plan.accesses.is_empty(), "nothing to decide about");
            for access in &plan.accesses {
                let (Access::ReadPath(path) | Access::WritePath(path)) = access else {
                    panic!("a patch touches files only: {access:?}");
                };
                assert!(path.is_absolute() && path.iter().all(|name| name != ".."), "{path:?}");
            }
        }
    }
});

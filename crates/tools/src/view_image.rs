//! The `view_image` tool: a picture for the model, judged by its content. Changes and scales nothing.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::LazyLock;

use attache_core::ports::tool::{Effect, FoundPicture, Location, Presentation, ToolKind, Workspace};
use attache_core::ports::{ToolRuntime, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::arguments::{self, Visibility};
use crate::files::{self, FileError};
use crate::limits::IMAGE_BYTES;
use crate::look::{self, Answer, Look};
use crate::paths::{self, told};
use crate::reach::Reach;
use crate::text::image_type;

/// Shows you an image file as a picture: PNG, JPEG, GIF or WebP, up to 5 MB. Not for text.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Absolute, or relative to the workspace root.
    path: String,
}

const EXAMPLE: &str = r#"{"path":"docs/screen.png"}"#;

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    arguments::spec::<Input>("view_image", ToolKind::Read, Effect::ReadOnly, Visibility::Shown)
});

#[derive(Debug, thiserror::Error)]
enum ViewError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{} is not a PNG, JPEG, GIF or WebP image; convert it with a command", told(path))]
    NoImage { path: PathBuf },
    #[error(
        "{} has {size} bytes, more than the {IMAGE_BYTES} that can be shown; scale it down with a command",
        told(path)
    )]
    TooLarge { path: PathBuf, size: u64 },
}

/// A call, understood.
#[derive(Debug)]
pub(crate) struct Request {
    path: PathBuf,
}

impl Look for Request {
    fn spec() -> &'static ToolSpec {
        &SPEC
    }

    fn needs_images() -> bool {
        true
    }

    fn parse(input: &Value, workspace: &Workspace) -> Result<Self, String> {
        let input: Input = arguments::parse(&SPEC, EXAMPLE, input)?;
        let path = paths::absolute(workspace, &input.path);
        Ok(Self { path: path.map_err(|problem| arguments::rejected(&SPEC, EXAMPLE, &problem))? })
    }

    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    fn presentation(&self, workspace: &Workspace) -> Presentation {
        Presentation {
            title: format!("View {}", paths::titled(&self.path, workspace)),
            kind: Some(ToolKind::Read),
            locations: vec![Location { path: self.path.clone(), line: None }],
            ..Presentation::default()
        }
    }

    async fn look(self, runtime: ToolRuntime) -> Result<Answer, String> {
        let found = look::blocking(move || find(self.path, &Reach::of(&runtime.site))).await?;
        Ok(Box::new(|call| call.pictured(found)))
    }
}

fn find(path: PathBuf, reach: &Reach) -> Result<FoundPicture, ViewError> {
    let mut file = files::open(&path, reach)?;
    let failed = |error: io::Error| FileError::io(&path, "read", error);
    let size = file.metadata().map_err(failed)?.len();
    let mut bytes = Vec::new();
    read_some(&mut file, START_BYTES, &mut bytes).map_err(failed)?;
    // What is no image is called that, whatever its size.
    let Some(mime) = image_type(&bytes) else { return Err(ViewError::NoImage { path }) };
    // The file may grow while it is read; the size seen first is no bound.
    if size <= IMAGE_BYTES {
        read_some(&mut file, IMAGE_BYTES + 1 - bytes.len() as u64, &mut bytes).map_err(failed)?;
    }
    match size.max(bytes.len() as u64) {
        size if size > IMAGE_BYTES => Err(ViewError::TooLarge { path, size }),
        _ => Ok(FoundPicture { path, mime, bytes }),
    }
}

/// As much as tells what an image is.
const START_BYTES: u64 = 16;

fn read_some(file: &mut File, most: u64, bytes: &mut Vec<u8>) -> io::Result<usize> {
    file.take(most).read_to_end(bytes)
}

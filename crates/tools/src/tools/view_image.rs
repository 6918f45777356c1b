//! The `view_image` tool: shows a picture to the model, with its type detected from its content. Does not
//! change or scale it.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use attache_core::ports::tool::{Effect, FoundPicture, Location, Presentation, ToolKind, Workspace};
use attache_core::ports::{ToolRuntime, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::arguments::{self, Visibility};
use crate::files::{self, FileError};
use crate::limits::IMAGE_BYTES;
use crate::paths::{self, told};
use crate::read_only::{self, FinishCall, ReadOnlyCall};
use crate::roots::OpenRoots;
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

impl ViewError {
    /// With names that the model can use in its next call.
    fn relative_to(self, root: &Path) -> Self {
        let below = |path: PathBuf| paths::below(root, &path).to_owned();
        match self {
            Self::File(error) => Self::File(error.relative_to(root)),
            Self::NoImage { path } => Self::NoImage { path: below(path) },
            Self::TooLarge { path, size } => Self::TooLarge { path: below(path), size },
        }
    }
}

/// A call with its arguments understood.
#[derive(Debug)]
pub(crate) struct ViewImageCall {
    path: PathBuf,
}

impl ReadOnlyCall for ViewImageCall {
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

    async fn look(self, runtime: ToolRuntime) -> Result<FinishCall, String> {
        let root = runtime.site.workspace.root.clone();
        let finding =
            move || find(self.path, &OpenRoots::of(&runtime.site)).map_err(|error| error.relative_to(&root));
        let found = read_only::blocking(finding).await?;
        Ok(Box::new(|call| call.pictured(found)))
    }
}

fn find(path: PathBuf, reach: &OpenRoots) -> Result<FoundPicture, ViewError> {
    let mut file = files::open(&path, reach)?;
    let failed = |error: io::Error| FileError::io(&path, "read", error);
    let size = file.metadata().map_err(failed)?.len();
    let mut bytes = Vec::new();
    read_some(&mut file, START_BYTES, &mut bytes).map_err(failed)?;
    // Checked before the size: a file that is no image is reported as that.
    let Some(mime) = image_type(&bytes) else { return Err(ViewError::NoImage { path }) };
    // The file may grow while it is read, so the size seen first is no limit.
    if size <= IMAGE_BYTES {
        read_some(&mut file, IMAGE_BYTES + 1 - bytes.len() as u64, &mut bytes).map_err(failed)?;
    }
    match size.max(bytes.len() as u64) {
        size if size > IMAGE_BYTES => Err(ViewError::TooLarge { path, size }),
        _ => Ok(FoundPicture { path, mime, bytes, text: String::new() }),
    }
}

/// Enough bytes to detect the type of an image.
const START_BYTES: u64 = 16;

fn read_some(file: &mut File, most: u64, bytes: &mut Vec<u8>) -> io::Result<usize> {
    file.take(most).read_to_end(bytes)
}

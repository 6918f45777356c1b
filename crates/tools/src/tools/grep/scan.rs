//! Searches the files of a place in parallel. Opens each below the place's own handle and maps none into
//! memory.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use attache_core::ports::tool::Site;
use grep_matcher::LineTerminator;
use grep_searcher::{BinaryDetection, MmapChoice, Searcher, SearcherBuilder};

use super::GrepCall;
use super::hits::{Collect, Hits};
use super::results::GrepResults;
use crate::files::FileError;
use crate::search::{self, Ignored, IsLink, SearchRoot, SearchStop, Shape, Unseen};

/// What a search has found.
#[derive(Debug)]
pub(super) struct GrepReport {
    pub(super) place: SearchRoot,
    pub(super) kept: GrepResults,
    pub(super) searched: u64,
    pub(super) binary: u64,
    pub(super) unseen: Unseen,
    pub(super) stop: SearchStop,
    pub(super) hint: Option<&'static str>,
}

#[derive(Debug)]
pub(super) struct GrepScan {
    request: GrepCall,
    place: SearchRoot,
    stop: SearchStop,
    /// Why a lock: every thread adds the files in which it found something.
    kept: Mutex<GrepResults>,
    /// Whether `kept` has reached its limit; avoids taking the lock before that.
    is_full: AtomicBool,
    searched: AtomicU64,
    binary: AtomicU64,
    unseen: Unseen,
}

impl GrepScan {
    pub(super) fn open(request: GrepCall, site: &Site, stop: SearchStop) -> Result<Self, FileError> {
        let place = SearchRoot::open(&request.path, site)?;
        Ok(Self {
            request,
            place,
            stop,
            kept: Mutex::default(),
            is_full: AtomicBool::new(false),
            searched: AtomicU64::new(0),
            binary: AtomicU64::new(0),
            unseen: Unseen::default(),
        })
    }

    pub(super) fn run(self) -> GrepReport {
        match self.place.shape() {
            Shape::File => self.file(Path::new(""), &mut self.searcher()),
            Shape::Directory => {
                let wanted = self.request.wanted.as_ref();
                search::walk(&self.place, wanted, Ignored::PassedBy, &self.stop, &self.unseen, || {
                    let mut searcher = self.searcher();
                    let scan = &self;
                    move |found| {
                        if found.link == IsLink::No {
                            scan.file(found.relative, &mut searcher);
                        }
                    }
                });
            }
        }
        GrepReport {
            kept: self.kept.into_inner().unwrap_or_else(PoisonError::into_inner),
            searched: self.searched.into_inner(),
            binary: self.binary.into_inner(),
            unseen: self.unseen,
            place: self.place,
            stop: self.stop,
            hint: self.request.hint,
        }
    }

    fn searcher(&self) -> Searcher {
        SearcherBuilder::new()
            .line_terminator(LineTerminator::crlf())
            .line_number(true)
            .before_context(self.request.context)
            .after_context(self.request.context)
            .binary_detection(BinaryDetection::quit(0))
            // If another program shortened a mapped file during the search, this process would be killed.
            .memory_map(MmapChoice::never())
            .build()
    }

    fn file(&self, relative: &Path, searcher: &mut Searcher) {
        if self.is_full.load(Ordering::Relaxed) {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.has_no_room_for(relative) {
                kept.cut();
                return;
            }
        }
        self.searched.fetch_add(1, Ordering::Relaxed);
        let mut hits = Hits::default();
        match self.search(relative, searcher, &mut hits) {
            Ok(()) => {}
            Err(_) if self.stop.is_due() => return,
            Err(_) => {
                self.unseen.failures.fetch_add(1, Ordering::Relaxed);
                return;
            }
        }
        if hits.is_binary {
            self.binary.fetch_add(1, Ordering::Relaxed);
        } else if !hits.matches.is_empty() {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.insert(relative, hits);
            self.is_full.store(kept.is_full(), Ordering::Relaxed);
        }
    }

    fn search(&self, relative: &Path, searcher: &mut Searcher, hits: &mut Hits) -> io::Result<()> {
        let file = Stoppable { file: self.place.open_file(relative)?, stop: &self.stop };
        let sink = Collect { hits, matcher: &self.request.matcher, stop: &self.stop, lead: None };
        searcher.search_reader(&self.request.matcher, file, sink)
    }
}

/// A file whose reading fails when the search has to end, so that a long file can't delay that.
struct Stoppable<'a> {
    file: File,
    stop: &'a SearchStop,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_due() {
            return Err(io::Error::other("the search has to end"));
        }
        self.file.read(buffer)
    }
}

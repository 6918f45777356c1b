//! A file system layer for SQLite that passes everything on to the usual one and fails where a test says so.
#![allow(unsafe_code)] // SQLite's file system interface is a table of C functions; there is no safe way to be one.

use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use rusqlite::ffi;

/// How the disk misbehaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The n-th operation fails with an I/O error; a write that fails has written half.
    IoErrorOnce,
    /// From the n-th operation on everything that writes fails as on a full disk, until it is healed.
    FullFromThere,
    /// From the n-th operation on everything fails with an I/O error, until it is healed.
    IoErrorFromThere,
}

/// Shared by a test and its layer: counts operations, and says which fails.
#[derive(Debug)]
pub(crate) struct Disk {
    pub(crate) name: String,
    fault: Mutex<Fault>,
    armed: AtomicBool,
    fail_at: AtomicU64,
    operations: AtomicU64,
    failed: Mutex<Vec<&'static str>>,
}

impl Disk {
    /// Registers a layer of its own; it stays for the life of the process.
    pub(crate) fn register(name: &str) -> Arc<Self> {
        let disk = Arc::new(Self {
            name: name.to_owned(),
            fault: Mutex::new(Fault::IoErrorOnce),
            armed: AtomicBool::new(false),
            fail_at: AtomicU64::new(0),
            operations: AtomicU64::new(0),
            failed: Mutex::default(),
        });
        // SAFETY: the default layer exists for the life of the process; ours is leaked, so it does too. The
        // table is copied and only `xOpen`, `xDelete` and `xAccess` replaced; the others of the Unix layer
        // ignore their layer.
        unsafe {
            let real = ffi::sqlite3_vfs_find(std::ptr::null());
            let mut layer = *real;
            layer.zName = CString::new(name).unwrap().into_raw();
            layer.pNext = std::ptr::null_mut();
            layer.szOsFile += size_of::<ShimFile>() as c_int;
            layer.pAppData = Box::into_raw(Box::new(Layer { real, disk: Arc::clone(&disk) })).cast();
            layer.xOpen = Some(open);
            layer.xDelete = Some(delete);
            layer.xAccess = Some(access);
            assert_eq!(ffi::sqlite3_vfs_register(Box::into_raw(Box::new(layer)), 0), ffi::SQLITE_OK);
        }
        disk
    }

    /// Counts from one again; the `n`-th operation will fail.
    pub(crate) fn arm(&self, fault: Fault, n: u64) {
        *self.fault.lock().unwrap() = fault;
        self.failed.lock().unwrap().clear();
        self.operations.store(0, Ordering::SeqCst);
        self.fail_at.store(n, Ordering::SeqCst);
        self.armed.store(true, Ordering::SeqCst);
    }

    pub(crate) fn heal(&self) {
        self.armed.store(false, Ordering::SeqCst);
    }

    /// What has failed since it was armed.
    pub(crate) fn failed(&self) -> Vec<&'static str> {
        self.failed.lock().unwrap().clone()
    }

    /// The code to fail with, if this operation is to fail.
    fn strike(&self, operation: &'static str, io_code: c_int) -> Option<c_int> {
        if !self.armed.load(Ordering::SeqCst) {
            return None;
        }
        let count = self.operations.fetch_add(1, Ordering::SeqCst) + 1;
        let fail_at = self.fail_at.load(Ordering::SeqCst);
        let writes = matches!(operation, "write" | "truncate" | "shm-map" | "open");
        let code = match *self.fault.lock().unwrap() {
            Fault::IoErrorOnce => (count == fail_at).then_some(io_code),
            Fault::IoErrorFromThere => (count >= fail_at).then_some(io_code),
            Fault::FullFromThere => (count >= fail_at && writes).then_some(match operation {
                "write" => ffi::SQLITE_FULL,
                _ => io_code,
            }),
        }?;
        self.failed.lock().unwrap().push(operation);
        Some(code)
    }
}

struct Layer {
    real: *mut ffi::sqlite3_vfs,
    disk: Arc<Disk>,
}

/// SQLite allocates `szOsFile` bytes: this head, and behind it the file of the real layer.
#[repr(C, align(8))]
struct ShimFile {
    base: ffi::sqlite3_file,
    inner: *mut ffi::sqlite3_file,
    disk: *const Disk,
}

unsafe fn layer<'a>(vfs: *mut ffi::sqlite3_vfs) -> &'a Layer {
    // SAFETY: `pAppData` was set in `register` and is never freed.
    unsafe { &*(*vfs).pAppData.cast::<Layer>() }
}

unsafe extern "C" fn open(
    vfs: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: SQLite gives `szOsFile` bytes at `file`, which is our head and room for the real file.
    unsafe {
        let layer = layer(vfs);
        (*file).pMethods = std::ptr::null();
        if let Some(code) = layer.disk.strike("open", ffi::SQLITE_CANTOPEN) {
            return code;
        }
        let shim = file.cast::<ShimFile>();
        let inner = file.cast::<u8>().add(size_of::<ShimFile>()).cast::<ffi::sqlite3_file>();
        (*shim).inner = inner;
        (*shim).disk = Arc::as_ptr(&layer.disk);
        let code = (*layer.real).xOpen.unwrap()(layer.real, name, inner, flags, out_flags);
        if !(*inner).pMethods.is_null() {
            (*file).pMethods = &METHODS;
        }
        code
    }
}

unsafe extern "C" fn delete(vfs: *mut ffi::sqlite3_vfs, name: *const c_char, sync: c_int) -> c_int {
    // SAFETY: passed on as it came.
    unsafe {
        let layer = layer(vfs);
        match layer.disk.strike("delete", ffi::SQLITE_IOERR_DELETE) {
            Some(code) => code,
            None => (*layer.real).xDelete.unwrap()(layer.real, name, sync),
        }
    }
}

unsafe extern "C" fn access(
    vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    flags: c_int,
    result: *mut c_int,
) -> c_int {
    // SAFETY: passed on as it came.
    unsafe {
        let layer = layer(vfs);
        match layer.disk.strike("access", ffi::SQLITE_IOERR_ACCESS) {
            Some(code) => code,
            None => (*layer.real).xAccess.unwrap()(layer.real, name, flags, result),
        }
    }
}

/// Passes a method on, after asking whether it shall fail (where a code to fail with is given).
macro_rules! method {
    ($name:ident, $field:ident ( $($arg:ident : $type:ty),* ) -> $result:ty) => {
        unsafe extern "C" fn $name(file: *mut ffi::sqlite3_file, $($arg: $type),*) -> $result {
            // SAFETY: `file` was opened by `open`, so the real file with its methods is behind it.
            unsafe {
                let inner = (*file.cast::<ShimFile>()).inner;
                (*(*inner).pMethods).$field.unwrap()(inner, $($arg),*)
            }
        }
    };
    ($name:ident, $field:ident ( $($arg:ident : $type:ty),* ), $operation:literal, $code:expr) => {
        unsafe extern "C" fn $name(file: *mut ffi::sqlite3_file, $($arg: $type),*) -> c_int {
            // SAFETY: `file` was opened by `open`, so the real file with its methods is behind it.
            unsafe {
                let shim = file.cast::<ShimFile>();
                if let Some(code) = (*(*shim).disk).strike($operation, $code) {
                    return code;
                }
                let inner = (*shim).inner;
                (*(*inner).pMethods).$field.unwrap()(inner, $($arg),*)
            }
        }
    };
}

method!(close, xClose() -> c_int);
method!(read, xRead(to: *mut c_void, count: c_int, at: i64), "read", ffi::SQLITE_IOERR_READ);
method!(truncate, xTruncate(size: i64), "truncate", ffi::SQLITE_IOERR_TRUNCATE);
method!(sync, xSync(flags: c_int), "sync", ffi::SQLITE_IOERR_FSYNC);
method!(file_size, xFileSize(size: *mut i64), "size", ffi::SQLITE_IOERR_FSTAT);
method!(lock, xLock(level: c_int), "lock", ffi::SQLITE_IOERR_LOCK);
method!(unlock, xUnlock(level: c_int) -> c_int);
method!(check_reserved, xCheckReservedLock(result: *mut c_int) -> c_int);
method!(control, xFileControl(operation: c_int, argument: *mut c_void) -> c_int);
method!(sector_size, xSectorSize() -> c_int);
method!(characteristics, xDeviceCharacteristics() -> c_int);
method!(
    shm_map,
    xShmMap(region: c_int, size: c_int, extend: c_int, to: *mut *mut c_void),
    "shm-map",
    ffi::SQLITE_IOERR_SHMMAP
);
method!(shm_lock, xShmLock(offset: c_int, count: c_int, flags: c_int) -> c_int);
method!(shm_barrier, xShmBarrier() -> ());
method!(shm_unmap, xShmUnmap(delete: c_int) -> c_int);

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    from: *const c_void,
    count: c_int,
    at: i64,
) -> c_int {
    // SAFETY: as in `method`; half of the given bytes is within them.
    unsafe {
        let shim = file.cast::<ShimFile>();
        let inner = (*shim).inner;
        let real = (*(*inner).pMethods).xWrite.unwrap();
        match (*(*shim).disk).strike("write", ffi::SQLITE_IOERR_WRITE) {
            Some(code) => {
                real(inner, from, count / 2, at);
                code
            }
            None => real(inner, from, count, at),
        }
    }
}

/// Version 2: write-ahead logging works, memory mapping is not offered.
static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved),
    xFileControl: Some(control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

//! A SQLite VFS over the platform's own: every call reaches the real file, and a [`Disk`] keeps
//! the books of what would survive.

#![expect(unsafe_code, reason = "a VFS is a table of C functions")]

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use rusqlite::ffi::{
    self, sqlite3_file, sqlite3_filename, sqlite3_int64, sqlite3_io_methods, sqlite3_vfs,
};

use crate::disk::{Disk, Kind, Moment};

/// Registers a new VFS; it lives as long as the process.
pub(crate) fn register() -> &'static Disk {
    static REGISTERED: AtomicU32 = AtomicU32::new(0);
    let name = format!("power-{}", REGISTERED.fetch_add(1, Ordering::Relaxed));
    let z_name = CString::new(name.as_str()).unwrap().into_raw();
    let disk: &'static Disk = Box::leak(Box::new(Disk::new(name)));
    // SAFETY: no name asks for the default VFS, which SQLite never frees.
    let real = unsafe { ffi::sqlite3_vfs_find(ptr::null()) };
    assert!(!real.is_null(), "SQLite has a default VFS");
    let under: &'static Under = Box::leak(Box::new(Under { real, disk }));
    // SAFETY: it is not null, and a registered VFS is not changed but for its `pNext`.
    let (sz_real, mx_pathname) = unsafe { ((*real).szOsFile, (*real).mxPathname) };
    let shim = sqlite3_vfs {
        iVersion: 2,
        szOsFile: c_int::try_from(size_of::<ShimFile>()).unwrap() + sz_real,
        mxPathname: mx_pathname,
        pNext: ptr::null_mut(),
        zName: z_name,
        pAppData: ptr::from_ref(under).cast_mut().cast(),
        xOpen: Some(open),
        xDelete: Some(delete),
        xAccess: Some(access),
        xFullPathname: Some(full_pathname),
        // Extensions are never loaded here.
        xDlOpen: None,
        xDlError: None,
        xDlSym: None,
        xDlClose: None,
        xRandomness: Some(randomness),
        xSleep: Some(sleep),
        xCurrentTime: Some(current_time),
        xGetLastError: Some(get_last_error),
        xCurrentTimeInt64: Some(current_time_int64),
        xSetSystemCall: None,
        xGetSystemCall: None,
        xNextSystemCall: None,
    };
    // SAFETY: the table and everything that it points to is leaked.
    let registered = unsafe { ffi::sqlite3_vfs_register(Box::into_raw(Box::new(shim)), 0) };
    assert_eq!(registered, ffi::SQLITE_OK);
    disk
}

/// What a shim VFS stands on.
struct Under {
    real: *mut sqlite3_vfs,
    disk: &'static Disk,
}

/// An open file: SQLite allocates `szOsFile` bytes for it, the real file follows behind.
#[repr(C)]
struct ShimFile {
    base: sqlite3_file,
    /// A box, or null for a file without a name, which no restart would find.
    tracked: *mut Tracked,
}

struct Tracked {
    disk: &'static Disk,
    path: PathBuf,
    kind: Kind,
}

/// # Safety
/// `vfs` is one that [`register`] made.
unsafe fn under(vfs: *mut sqlite3_vfs) -> &'static Under {
    // SAFETY: `register` leaked it and put it there.
    unsafe { &*(*vfs).pAppData.cast::<Under>() }
}

/// # Safety
/// `file` is one of [`open`], or one that SQLite hands to it.
unsafe fn real(file: *mut sqlite3_file) -> *mut sqlite3_file {
    // SAFETY: `szOsFile` asked for the room; the size of `ShimFile` keeps the alignment of pointers.
    unsafe { file.cast::<ShimFile>().add(1).cast() }
}

/// # Safety
/// `file` is one of [`open`]; the answer is not kept beyond the call that got the file.
unsafe fn tracked<'a>(file: *mut sqlite3_file) -> Option<&'a Tracked> {
    // SAFETY: `open` put a box or null there, which `close` frees.
    unsafe { (*file.cast::<ShimFile>()).tracked.as_ref() }
}

/// # Safety
/// `name` is a C string.
unsafe fn path(name: *const c_char) -> PathBuf {
    // SAFETY: the caller's.
    let name = unsafe { CStr::from_ptr(name) };
    Path::new(OsStr::from_bytes(name.to_bytes())).to_owned()
}

fn kind(flags: c_int) -> Option<Kind> {
    if flags & ffi::SQLITE_OPEN_DELETEONCLOSE != 0 {
        return None;
    }
    let is = |flag| flags & flag != 0;
    if is(ffi::SQLITE_OPEN_MAIN_DB) {
        Some(Kind::Database)
    } else if is(ffi::SQLITE_OPEN_WAL) {
        Some(Kind::Log)
    } else if is(ffi::SQLITE_OPEN_MAIN_JOURNAL | ffi::SQLITE_OPEN_SUPER_JOURNAL) {
        Some(Kind::Journal)
    } else {
        None
    }
}

unsafe extern "C" fn open(
    vfs: *mut sqlite3_vfs,
    name: sqlite3_filename,
    file: *mut sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: SQLite passes our VFS, room for `szOsFile` bytes, and null or a name that outlives
    // the file.
    unsafe {
        let Under { real: real_vfs, disk } = under(vfs);
        let shim = file.cast::<ShimFile>();
        // Without methods SQLite does not close the file.
        (*shim).base.pMethods = ptr::null();
        (*shim).tracked = ptr::null_mut();
        let tracked = kind(flags).filter(|_| !name.is_null()).map(|kind| Tracked {
            disk,
            path: path(name),
            kind,
        });
        if let Some(tracked) = &tracked
            && tracked.path.exists()
        {
            disk.opened(&tracked.path);
        }
        let real = real(file);
        (*real).pMethods = ptr::null();
        let opened = match (**real_vfs).xOpen {
            Some(open) => open(*real_vfs, name, real, flags, out_flags),
            None => ffi::SQLITE_CANTOPEN,
        };
        if opened == ffi::SQLITE_OK {
            if let Some(tracked) = tracked {
                disk.opened(&tracked.path);
                (*shim).tracked = Box::into_raw(Box::new(tracked));
            }
            (*shim).base.pMethods = &METHODS;
        } else if let Some(methods) = (*real).pMethods.as_ref()
            && let Some(close) = methods.xClose
        {
            close(real);
        }
        opened
    }
}

unsafe extern "C" fn delete(vfs: *mut sqlite3_vfs, name: *const c_char, sync: c_int) -> c_int {
    // SAFETY: SQLite passes our VFS and a C string.
    unsafe {
        let Under { real, disk } = under(vfs);
        let Some(delete) = (**real).xDelete else {
            return ffi::SQLITE_IOERR_DELETE;
        };
        let deleted = delete(*real, name, sync);
        if deleted == ffi::SQLITE_OK {
            let path = path(name);
            if disk.deleted(&path) {
                let log = path.as_os_str().as_bytes().ends_with(b"-wal");
                let kind = if log { Kind::Log } else { Kind::Journal };
                disk.moment(Moment::Deleted, Some(kind));
            }
        }
        deleted
    }
}

/// Methods of the VFS that only pass the call on.
macro_rules! forward_vfs {
    ($($name:ident => $method:ident($($argument:ident: $type:ty),*);)*) => {$(
        unsafe extern "C" fn $name(vfs: *mut sqlite3_vfs, $($argument: $type),*) -> c_int {
            // SAFETY: SQLite passes our VFS; the other arguments go on as they came.
            unsafe {
                let real = under(vfs).real;
                match (*real).$method {
                    Some(method) => method(real, $($argument),*),
                    None => ffi::SQLITE_ERROR,
                }
            }
        }
    )*};
}

forward_vfs! {
    access => xAccess(name: *const c_char, flags: c_int, out: *mut c_int);
    full_pathname => xFullPathname(name: *const c_char, room: c_int, out: *mut c_char);
    randomness => xRandomness(count: c_int, out: *mut c_char);
    sleep => xSleep(microseconds: c_int);
    current_time => xCurrentTime(out: *mut f64);
    get_last_error => xGetLastError(room: c_int, out: *mut c_char);
    current_time_int64 => xCurrentTimeInt64(out: *mut sqlite3_int64);
}

/// The method of the real file, called; a file that lacks it answers `$missing`.
macro_rules! call {
    ($file:expr, $method:ident($($argument:expr),*), $missing:expr) => {{
        let real = real($file);
        match (*(*real).pMethods).$method {
            Some(method) => method(real, $($argument),*),
            None => $missing,
        }
    }};
}

/// Methods of a file that only pass the call on.
macro_rules! forward {
    ($($name:ident => $method:ident($($argument:ident: $type:ty),*) or $missing:expr;)*) => {$(
        unsafe extern "C" fn $name(file: *mut sqlite3_file, $($argument: $type),*) -> c_int {
            // SAFETY: SQLite passes a file of `open`, whose real file is open too; the other
            // arguments go on as they came.
            unsafe { call!(file, $method($($argument),*), $missing) }
        }
    )*};
}

forward! {
    read => xRead(to: *mut c_void, length: c_int, at: sqlite3_int64) or ffi::SQLITE_IOERR_READ;
    file_size => xFileSize(out: *mut sqlite3_int64) or ffi::SQLITE_IOERR_FSTAT;
    lock => xLock(level: c_int) or ffi::SQLITE_IOERR_LOCK;
    unlock => xUnlock(level: c_int) or ffi::SQLITE_IOERR_UNLOCK;
    check_reserved_lock => xCheckReservedLock(out: *mut c_int) or ffi::SQLITE_IOERR_LOCK;
    sector_size => xSectorSize() or 0;
    device_characteristics => xDeviceCharacteristics() or 0;
    shm_map => xShmMap(region: c_int, size: c_int, extend: c_int, out: *mut *mut c_void)
        or ffi::SQLITE_IOERR_SHMMAP;
    shm_lock => xShmLock(offset: c_int, count: c_int, flags: c_int) or ffi::SQLITE_IOERR_SHMLOCK;
    shm_unmap => xShmUnmap(delete: c_int) or ffi::SQLITE_OK;
    // No page is mapped when `out` stays as SQLite set it: null.
    fetch => xFetch(at: sqlite3_int64, length: c_int, out: *mut *mut c_void) or ffi::SQLITE_OK;
    unfetch => xUnfetch(at: sqlite3_int64, page: *mut c_void) or ffi::SQLITE_OK;
}

unsafe extern "C" fn shm_barrier(file: *mut sqlite3_file) {
    // SAFETY: as in `forward`.
    unsafe { call!(file, xShmBarrier(), ()) }
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    // SAFETY: as in `forward`; SQLite closes a file once, and `open` made the box.
    unsafe {
        let shim = file.cast::<ShimFile>();
        if !(*shim).tracked.is_null() {
            drop(Box::from_raw((*shim).tracked));
            (*shim).tracked = ptr::null_mut();
        }
        call!(file, xClose(), ffi::SQLITE_OK)
    }
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    from: *const c_void,
    length: c_int,
    at: sqlite3_int64,
) -> c_int {
    // SAFETY: as in `forward`; `from` has `length` bytes.
    unsafe {
        let written = call!(file, xWrite(from, length, at), ffi::SQLITE_IOERR_WRITE);
        if written == ffi::SQLITE_OK
            && let Some(Tracked { disk, path, kind }) = tracked(file)
        {
            let length = usize::try_from(length).unwrap();
            let bytes = std::slice::from_raw_parts(from.cast::<u8>(), length);
            disk.written(path, usize::try_from(at).unwrap(), bytes);
            disk.moment(Moment::Written, Some(*kind));
        }
        written
    }
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, size: sqlite3_int64) -> c_int {
    // SAFETY: as in `forward`.
    unsafe {
        let truncated = call!(file, xTruncate(size), ffi::SQLITE_IOERR_TRUNCATE);
        if truncated == ffi::SQLITE_OK
            && let Some(Tracked { disk, path, kind }) = tracked(file)
        {
            disk.resized(path, usize::try_from(size).unwrap());
            disk.moment(Moment::Written, Some(*kind));
        }
        truncated
    }
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: as in `forward`.
    unsafe {
        let Some(Tracked { disk, path, kind }) = tracked(file) else {
            return call!(file, xSync(flags), ffi::SQLITE_IOERR_FSYNC);
        };
        disk.moment(Moment::Syncing, Some(*kind));
        let reached = disk.pending(path);
        let synced = call!(file, xSync(flags), ffi::SQLITE_IOERR_FSYNC);
        if synced == ffi::SQLITE_OK {
            disk.synced(path, reached);
            disk.moment(Moment::Synced, Some(*kind));
        }
        synced
    }
}

unsafe extern "C" fn file_control(
    file: *mut sqlite3_file,
    op: c_int,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: as in `forward`; `size` is ours.
    unsafe {
        let mut size: [sqlite3_int64; 2] = [0; 2];
        call!(file, xFileSize(&mut size[0]), ffi::SQLITE_OK);
        let done = call!(file, xFileControl(op, argument), ffi::SQLITE_NOTFOUND);
        call!(file, xFileSize(&mut size[1]), ffi::SQLITE_OK);
        // A size hint makes a mapped file grow ahead of its writes.
        if op == ffi::SQLITE_FCNTL_SIZE_HINT
            && size[0] != size[1]
            && let Some(Tracked { disk, path, .. }) = tracked(file)
        {
            disk.resized(path, usize::try_from(size[1]).unwrap());
        }
        done
    }
}

static METHODS: sqlite3_io_methods = sqlite3_io_methods {
    iVersion: 3,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: Some(fetch),
    xUnfetch: Some(unfetch),
};

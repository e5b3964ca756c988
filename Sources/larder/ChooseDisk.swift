import Glibc
import Settings

extension ConfigurationReading {
    /// Decides what the configuration leaves out about the disk tier of the default zone: its directory and its size.
    ///
    /// Looks at the machine and changes nothing there. If there is no place for a disk tier, a warning says so and Larder stores
    /// responses in memory only.
    /// - Parameter running: the settings in force, for a reload: the choice made at the start holds.
    mutating func chooseDisk(
        like running: CacheSettings? = nil, environment: (String) -> String? = environmentVariable
    ) {
        guard var cache = configuration?.cache, cache.writtenDiskSize == nil || cache.writtenDiskPath == nil else {
            return
        }
        if let running, running.defaultDisk.size > 0, running.writtenDiskPath == cache.writtenDiskPath {
            cache.defaultDisk = running.defaultDisk
        } else {
            choose(&cache, environment)
        }
        configuration?.cache = cache
    }

    private mutating func choose(_ cache: inout CacheSettings, _ environment: (String) -> String?) {
        if cache.writtenDiskSize == 0 { return }
        let directories = cache.writtenDiskPath.map { [$0] } ?? DefaultDisk.directories(environment: environment)
        guard let path = directories.first(where: { canBeWritten($0) }) else {
            // Where a size is written, opening the disk tier fails and says why.
            if cache.isDiskLeftOut {
                warn("none of \(directories.joined(separator: ", ")) can be written")
            }
            return
        }
        if cache.writtenDiskPath == nil, let zone = cache.zone(usingDirectory: path) {
            return warn("\(path) and the disk of zone \(zone) are in each other's way")
        }
        let size = DefaultDisk.size(freeBytes: freeBytes(around: path) &+ usedBytes(below: path))
        cache.defaultDisk = DefaultDisk(path: path, size: size)
        if size == 0, cache.writtenDiskSize == nil { warn("the file system of \(path) is full") }
    }

    private mutating func warn(_ reason: String) {
        warnings.append(
            problem(
                "cache.disk", "\(reason): responses are stored in memory only",
                hint: "set cache.disk.path to a directory with free space, or cache.disk.size to 0"))
    }
}

/// The directory exists and this process may write there, or the process may create it.
private func canBeWritten(_ path: String) -> Bool {
    unsafe access(nearestExisting(path), R_OK | W_OK | X_OK) == 0
}

/// The path itself, or the closest directory above it that exists.
private func nearestExisting(_ path: String) -> String {
    var path = path
    while !path.isEmpty, !fileExists(path) {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        path = String(path[..<slash])
    }
    return path.isEmpty ? "/" : path
}

/// What this process may still write to the file system of a path; 0 if the system does not say.
private func freeBytes(around path: String) -> UInt64 {
    var status = statvfs()
    guard unsafe statvfs(nearestExisting(path), &status) == 0 else { return 0 }
    return UInt64(status.f_bavail) &* UInt64(status.f_frsize)
}

/// The bytes of all files below a directory; 0 if there is none.
///
/// They count as free: a store that grew must not shrink its own default with each start.
private func usedBytes(below path: String, depth: Int = 0) -> UInt64 {
    // A store has two levels of directories.
    guard depth < 4, let directory = unsafe opendir(path) else { return 0 }
    defer { unsafe closedir(directory) }
    var sum: UInt64 = 0
    while let entry = unsafe readdir(directory) {
        let name = unsafe withUnsafeBytes(of: entry.pointee.d_name) { bytes in
            unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        var status = stat()
        guard name != ".", name != "..", unsafe lstat("\(path)/\(name)", &status) == 0 else { continue }
        switch status.st_mode & S_IFMT {
        case S_IFDIR: sum &+= usedBytes(below: "\(path)/\(name)", depth: depth + 1)
        case S_IFREG: sum &+= UInt64(status.st_blocks) &* 512
        default: break
        }
    }
    return sum
}

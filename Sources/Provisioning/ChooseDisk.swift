import Glibc
package import Settings

extension ConfigurationReading {
    /// Decides about the disk tier of the default zone as far as the configuration does not: its directory and its size.
    ///
    /// This examines the machine and changes nothing on it. If there is no place for a disk tier, it adds a warning, and Larder stores
    /// responses in memory only.
    /// - Parameter running: the settings in effect, for a reload: the choice that was made at the start stays.
    package mutating func chooseDisk(
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
            // If a size is configured, opening the disk tier will fail and say why.
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

/// Whether the directory exists and this process may write there, or this process may create it.
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

/// How many bytes this process can still write to the file system of a path. Returns 0 if the system does not say.
private func freeBytes(around path: String) -> UInt64 {
    var status = statvfs()
    guard unsafe statvfs(nearestExisting(path), &status) == 0 else { return 0 }
    return UInt64(status.f_bavail) &* UInt64(status.f_frsize)
}

/// The bytes of all files below a directory. Returns 0 if it does not exist.
///
/// These bytes count as free: otherwise a store that grew would get a smaller default size at every start.
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

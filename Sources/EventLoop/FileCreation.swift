import Glibc

/// What the system says about making a file or a directory, asked without making one.
package enum FileCreation {
    /// The error with which nothing can be made at a path where there is nothing yet. Nil: it could be made.
    package static func obstacle(_ path: String) -> CInt? {
        // With "/." a file that is no directory is an error as well.
        unsafe access("\(directory(of: path))/.", W_OK | X_OK) == 0 ? nil : errno
    }

    /// The directory of a file or a directory: what stands in front of its name.
    package static func directory(of path: String) -> String {
        var path = path[...]
        while path.count > 1, path.last == "/" { path = path.dropLast() }
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }
}

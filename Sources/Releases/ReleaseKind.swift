/// What the response to a request offers, as far as the age of releases is concerned (`release` of a cache rule).
package enum ReleaseKind: String, CaseIterable, Sendable {
    /// A file of a package. Its `Last-Modified` says when it was published.
    case file
    /// A file of a Python package: its name begins with that of the package.
    case pythonFile = "python-file"
    /// The document about an npm package, with all its versions (a packument): `time` says when each was published.
    case npmIndex = "npm-index"
    /// A document at a path that may be anything: that of an npm package if it has the form of one. Registries below a path of a host are so.
    case npmDocument = "npm-document"
    /// The index of a Python project in JSON (PEP 691): `upload-time` says when each file was published (PEP 700).
    case pythonIndex = "python-index"

    package var isIndex: Bool {
        switch self {
        case .file, .pythonFile: false
        case .npmIndex, .npmDocument, .pythonIndex: true
        }
    }

    /// Whether the path alone says that the response is an index.
    package var isCertainOfIndex: Bool { isIndex && self != .npmDocument }

    /// The form in which two names of one package are equal. Python ignores case, and takes `-`, `_` and `.` for the same (PEP 503).
    package func normalised(_ name: String) -> String {
        switch self {
        case .file, .npmIndex, .npmDocument: name
        case .pythonFile, .pythonIndex: normalisedPythonName(name)
        }
    }
}

/// Runs of `-`, `_` and `.` become one `-`, and letters become small (PEP 503).
func normalisedPythonName(_ name: String) -> String {
    var result = ""
    for character in name.lowercased() {
        let isSeparator = "-_.".contains(character)
        if isSeparator && result.hasSuffix("-") { continue }
        result.append(isSeparator ? "-" : character)
    }
    return result
}

/// The name of the package that a Python file is of, from the name of the file (PEP 427, PEP 625): `six` of `six-1.16.0-py2.py3-none-any.whl`.
/// Returns nil if the name has no version.
package func pythonPackage(ofFile name: String) -> String? {
    let isWheel = name.contains(".whl") || name.hasSuffix(".egg")
    let parts = name.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count >= 2, let first = parts.first, !first.isEmpty else { return nil }
    // A name of an old source distribution may have hyphens; its version has none.
    return normalisedPythonName(isWheel ? String(first) : parts.dropLast().joined(separator: "-"))
}

import Message

/// Whether a path names an archive or a package.
///
/// - Parameter path: as sent, without the query.
func namesPackage(_ path: ArraySlice<UInt8>) -> Bool {
    let tail = path.suffix(8)
    guard let dot = tail.lastIndex(of: UInt8(ascii: ".")) else { return false }
    let suffix = tail[(dot + 1)...]
    return packageSuffixes.contains { suffix.elementsEqual($0.utf8, by: { asciiLowercased($0) == $1 }) }
}

private let packageSuffixes = [
    "jar", "war", "ear", "aar", "klib", "pom", "module", "crate", "gem", "rz", "whl", "egg", "nupkg", "snupkg", "conda",
    "zip", "apk", "deb", "udeb", "ddeb", "dsc", "rpm", "drpm", "tgz", "gz", "bz2", "xz", "zst", "nar", "vsix",
]

/// Whether the content is a page for people: what portals, log-ins and repository managers send with 200 in place of what they do not have.
func isPage(_ fields: Fields) -> Bool {
    guard let type = fields.first(.contentType) else { return false }
    let name = trimOWS(type.prefix { $0 != UInt8(ascii: ";") })
    return equalsIgnoringCase(name, "text/html") || equalsIgnoringCase(name, "application/xhtml+xml")
}

import Message

/// Whether gzip makes content of this media type smaller (RFC 9110 §8.3). Images, sound and archives are compressed already.
///
/// - Parameter contentType: the value of the field, including parameters.
package func isCompressibleType(_ contentType: ArraySlice<UInt8>) -> Bool {
    let end = contentType.firstIndex(of: 0x3B) ?? contentType.endIndex
    let type = String(decoding: trimOWS(contentType[..<end]).map(asciiLowercased), as: UTF8.self)
    // The events of an event stream must arrive at once, and a compressor would delay them.
    if type.hasPrefix("text/") { return type != "text/event-stream" }
    return type.hasSuffix("+json") || type.hasSuffix("+xml") || compressibleTypes.contains(type)
}

private let compressibleTypes: Set<String> = [
    "application/ecmascript", "application/javascript", "application/json", "application/rtf", "application/toml",
    "application/vnd.ms-fontobject", "application/wasm", "application/x-javascript", "application/x-ndjson",
    "application/x-sh", "application/x-yaml", "application/xml", "application/xml-dtd", "application/yaml",
    "font/otf", "font/ttf", "image/bmp", "image/vnd.microsoft.icon", "image/x-icon",
]

/// Whether the path names a file that is itself compressed. Servers with `AddEncoding x-gzip .gz` send such files with `Content-Encoding: gzip`
/// to everybody, and clients that do not know codings store them as they arrive. If Larder decompressed them, such clients would get a
/// file that they did not request, and no checksum would match.
package func namesCompressedFile(_ uri: some Collection<UInt8>) -> Bool {
    let path = uri.prefix { $0 != 0x3F && $0 != 0x23 }
    guard let dot = Array(path.suffix(8)).lastIndex(of: 0x2E) else { return false }
    let suffix = path.suffix(8).dropFirst(dot + 1).map(asciiLowercased)
    return compressedFileSuffixes.contains { suffix.elementsEqual($0.utf8) }
}

private let compressedFileSuffixes = [
    "gz", "gzip", "tgz", "taz", "svgz", "xz", "txz", "lzma", "zst", "tzst", "br", "bz2", "tbz2", "lz4",
]

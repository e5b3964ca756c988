package import Message

/// The fields of a stored response that its 304 carries (RFC 9110 §15.4.5): all except those that describe the content, which is not
/// sent, and except `Last-Modified` if there is an `ETag`.
package func notModifiedFields(of stored: Fields) -> Fields {
    let hasETag = stored.contains(.eTag)
    return stored.dropping { line in
        switch line.name {
        case .contentLength, .contentEncoding, .contentLanguage, .contentType, .contentRange: true
        case .lastModified: hasETag
        default: false
        }
    }
}

package import Message

/// The fields of a stored response that its 304 carries (RFC 9110 §15.4.5): all but those that describe the content that
/// is not sent, and `Last-Modified` where an `ETag` says it better.
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

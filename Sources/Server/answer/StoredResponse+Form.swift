import Caching
import Fleet
package import Message
package import Storage

/// The form of a stored response on the disk: its fields, what Caching knows about it, and which requests it suits. Key and body are stored
/// beside it (docs/storage-format.md).
///
///     version 1 │ flags │ Fields │ CachedResponse │ SecondaryKey, if any │ CodingVariant, if any │ addresses, if any
extension StoredResponse {
    private static let formVersion: UInt8 = 1

    package static let format = ResponseFormat(
        form: { record in unsafe unsafeDowncast(record, to: StoredResponse.self).form },
        record: { key, copy, body in StoredResponse(key: key, from: copy, body: body) },
        doubted: { record in unsafe unsafeDowncast(record, to: StoredResponse.self).doubted },
        moved: { record, seconds in unsafe unsafeDowncast(record, to: StoredResponse.self).moved(by: Seconds(seconds)) }
    )

    /// Nil for a response that does not outlive the process.
    private var form: ResponseForm? {
        let retention: Retention
        switch storage {
        case .session: return nil
        case .permanent: retention = .permanent
        case .pinned: retention = .pinned
        }
        var form = StoredFormWriter()
        form.write(Self.formVersion)
        form.write(
            flags: secondaryKey != nil, codingVariant != nil, compressedCopy != nil, isUndecodable, !addresses.isEmpty)
        fields.write(to: &form)
        cached.write(to: &form)
        secondaryKey?.write(to: &form)
        codingVariant?.write(to: &form)
        if !addresses.isEmpty { form.write(addresses.list) }
        var mediaType = mediaTypeBytes(fields)
        if mediaType.count > 127 { mediaType.removeLast(mediaType.count - 127) }
        let attributes = StoredAttributes(
            retention: retention, status: cached.status, storedAt: terms.responseTime.secondsSinceEpoch,
            expiresAt: expiry.secondsSinceEpoch, mediaType: mediaType,
            tags: tags(of: fields).filter { $0.count <= 255 }, addresses: addresses.list)
        return ResponseForm(attributes: attributes, head: form.finish())
    }

    /// Names the variant in the fleet's store: the same name for responses that replace each other.
    func variantName(_ hash: some FleetHash) -> [UInt8] {
        guard secondaryKey != nil || codingVariant != nil else { return [UInt8(ascii: "-")] }
        var form = StoredFormWriter()
        secondaryKey?.write(to: &form)
        codingVariant?.write(to: &form)
        return hexadecimal(hash.code([], form.finish().span).prefix(12))
    }

    private var expiry: WallTime {
        terms.noCache || terms.isOutdated ? terms.responseTime : terms.expiry
    }

    /// Reads the form. Nil if it is of another version, damaged, or partial without a way to ask for the rest.
    private convenience init?(key: StorageKey, from copy: StoredCopy, body: Body) {
        var form = StoredFormReader(copy.head)
        do throws(StoredFormError) {
            guard try form.read(UInt8.self) == Self.formVersion else { return nil }
            let flags = try form.readFlags()
            let fields = try Fields(from: &form)
            let cached = try CachedResponse(from: &form, fields: fields)
            let secondaryKey = flags[0] ? try SecondaryKey(from: &form) : nil
            let codingVariant = flags[1] ? try CodingVariant(from: &form) : nil
            let addresses = flags[4] ? try form.readList() : []
            // A partial response without a strong validator can never be completed.
            let canBeCompleted = partConditions(for: cached, from: 0, to: nil) != nil
            guard form.isAtEnd, body.isComplete || canBeCompleted else { return nil }
            self.init(
                key: key, keyBytes: copy.keyBytes, cached: cached, fields: fields,
                secondaryKey: secondaryKey, codingVariant: codingVariant, body: body,
                contentLength: copy.place.bodyBytes,
                storage: copy.attributes.retention == .pinned ? .pinned : .permanent,
                compressedCopy: flags[2] ? CompressedCopy() : nil, addresses: StoredAddresses(addresses))
            if flags[3] { markUndecodable() }
        } catch { return nil }
    }
}

/// The media type in lower case, without parameters. Nil if the response has none.
package func mediaType(_ fields: Fields) -> String? {
    let type = mediaTypeBytes(fields)
    return type.isEmpty ? nil : String(decoding: type, as: UTF8.self).lowercased()
}

/// The same as bytes, with ASCII letters in lower case. Empty if the response has none.
private func mediaTypeBytes(_ fields: Fields) -> [UInt8] {
    guard let value = fields.first(.contentType) else { return [] }
    var end = value.firstIndex(of: UInt8(ascii: ";")) ?? value.endIndex
    while end > value.startIndex, isOWS(value[end - 1]) { end -= 1 }
    var type = Array(value[..<end])
    for index in type.indices { type[index] = asciiLowercased(type[index]) }
    return type
}

/// The tags of a response: `Surrogate-Key` separates them by spaces, `Cache-Tag` by commas.
package func tags(of fields: Fields) -> [[UInt8]] {
    var tags: [[UInt8]] = []
    for line in fields.lines {
        switch line.name {
        case .surrogateKey:
            tags += fields.value(of: line).split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }.map {
                Array($0)
            }
        case .other where equalsIgnoringCase(fields.name(of: line), cacheTag):
            forEachListElement(fields.value(of: line)) { tags.append(Array($0)) }
        default: continue
        }
    }
    return tags
}

private let cacheTag = Array("Cache-Tag".utf8)

import Caching
import Compression
import Forwarding
import Message
import Releases
import Storage
import TLS

/// Reads a stored index and removes what is too young. May block, and takes some milliseconds for each megabyte.
struct IndexFiltering: Sendable {
    let body: Body
    let coding: StoredCoding
    let rule: ReleaseRule
    /// Names the index in a warning.
    let uri: [UInt8]
    let now: WallTime
    let tier: MemoryTier

    private static let triedAgainAfter = Seconds(2)

    func run() -> FilteredIndexes.Result {
        do throws(Problem) {
            let text = try decoded(read())
            return result(of: try filtered(text))
        } catch {
            if case .gone = error { return FilteredIndexes.Result(content: .gone) }
            Diagnostics.warning("min_age: \(String(decoding: uri, as: UTF8.self)) is not filtered: \(error.text)")
            return FilteredIndexes.Result(content: .unreadable)
        }
    }

    private enum Problem: Error {
        case tooLarge, gone, coding, form(IndexError)

        var text: String {
            switch self {
            case .tooLarge: "it has more than \(FilteredIndex.bytesMax >> 20) MiB"
            case .gone: "its bytes have left the store"
            case .coding: "its content coding is not known, or its bytes are not in it"
            case .form(.notJSON(let error)): "it is not JSON: \(error.text)"
            case .form(.ambiguous): "a member occurs twice that decides which releases there are"
            }
        }
    }

    private func read() throws(Problem) -> [UInt8] {
        let length = body.length
        guard length <= FilteredIndex.bytesMax else { throw .tooLarge }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(length)
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 4 * Body.blockBytes, alignment: 4096)
        defer { unsafe room.deallocate() }
        while bytes.count < length {
            guard
                case .bytes(let piece) = unsafe body.piece(
                    from: bytes.count, limit: length - bytes.count, room: room, waits: true)
            else { throw .gone }
            unsafe bytes.append(contentsOf: piece)
        }
        return bytes
    }

    private func decoded(_ bytes: [UInt8]) throws(Problem) -> [UInt8] {
        switch coding {
        case .identity: return bytes
        case .single(.gzip): return try inflated(bytes)
        case .single, .opaque: throw .coding
        }
    }

    private func inflated(_ bytes: [UInt8]) throws(Problem) -> [UInt8] {
        var inflator = Inflator(bounds: InflateBounds(outputMax: FilteredIndex.bytesMax))
        var text: [UInt8] = []
        var offset = 0
        do throws(InflateError) {
            while true {
                let step = unsafe try appendStep(to: &text, room: 256 << 10) { room throws(InflateError) in
                    unsafe try bytes.span.bytes.withUnsafeBytes { (all) throws(InflateError) in
                        unsafe try inflator.step(UnsafeRawBufferPointer(rebasing: all[offset...]), into: room)
                    }
                }
                offset += step.consumed
                if !step.needsRoom, offset == bytes.count { break }
            }
            try inflator.finish()
        } catch {
            throw error == .outputTooLarge ? .tooLarge : .coding
        }
        return text
    }

    private func filtered(_ text: [UInt8]) throws(Problem) -> FilteredIndex {
        do throws(IndexError) {
            return try filterIndex(text, rule.kind, of: rule.package, by: rule.minimumAge, now: now)
        } catch { throw .form(error) }
    }

    private func result(of index: FilteredIndex) -> FilteredIndexes.Result {
        var result = FilteredIndexes.Result(
            content: .asStored, withheld: index.withheld, hasUndated: index.undatedCount > 0, changesAt: index.changesAt
        )
        guard let text = index.text else { return result }
        if let body = stored(text) {
            result.content = .edited(body, tag: tag(of: text))
        } else {
            result.content = .noRoom
            // Who waits now is told so. Who comes later may find room.
            result.changesAt = now + Self.triedAgainAfter
        }
        return result
    }

    private func stored(_ text: [UInt8]) -> Body? {
        guard let body = tier.makeBody(expectedLength: text.count, lengthMax: text.count) else { return nil }
        guard unsafe text.withUnsafeBytes({ unsafe body.append($0) }) == .appended, body.finish() else { return nil }
        return body
    }

    /// A strong tag: it follows from the bytes alone.
    private func tag(of text: [UInt8]) -> [UInt8] {
        let digits = Digest.sha256(text).prefix(16).flatMap {
            [HeadWriter.hexDigit($0 >> 4), HeadWriter.hexDigit($0 & 15)]
        }
        return Array("\"larder-".utf8) + digits + [UInt8(ascii: "\"")]
    }
}

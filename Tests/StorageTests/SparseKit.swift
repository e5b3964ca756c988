import Storage
import Testing

extension Fill {
    func append(_ bytes: [UInt8]) -> Body.AppendResult { unsafe bytes.withUnsafeBytes { unsafe append($0) } }

    /// Plays read(2) into the page: as many bytes as there is room for. Returns the room; nil: none.
    func read(_ bytes: [UInt8], hint: Int) -> Int? {
        guard let room = unsafe writable(hint) else { return nil }
        let count = min(room.count, bytes.count)
        unsafe room.copyBytes(from: bytes.prefix(count))
        commit(count)
        return room.count
    }

    /// Fills what is left with the pattern, in parts of at most `step` bytes, in both ways there are.
    func complete(step: Int = 50_000) -> Bool {
        while position < range.upperBound {
            let part = position..<min(range.upperBound, position + step)
            if part.lowerBound % 2 == 0 {
                guard append(pattern(part)) == .appended else { return false }
            } else {
                guard read(pattern(part), hint: step) != nil else { return false }
            }
        }
        return finish()
    }
}

extension Body {
    /// A claim in words, to be compared.
    enum Found: Equatable { case available(Int), awaited, missing(Range<Int>), unavailable }

    /// Looks, and gives up at once what it claimed.
    func find(at offset: Int, limit: Int = .max) -> Found {
        switch claim(at: offset, limit: limit) {
        case .available(let end): .available(end)
        case .awaited: .awaited
        case .missing(let fill): .missing(fill.range)
        case .unavailable: .unavailable
        }
    }

    func hole(at offset: Int, limit: Int = .max) throws -> Fill {
        guard case .missing(let fill) = claim(at: offset, limit: limit) else { throw NoHole() }
        return fill
    }

    /// Claims and fills whatever is missing in the range, as one that is alone with the body.
    func fill(_ range: Range<Int>) -> Bool {
        var offset = range.lowerBound
        while offset < range.upperBound {
            switch claim(at: offset, limit: range.upperBound) {
            case .available(let end): offset = end
            case .missing(let fill):
                guard fill.complete() else { return false }
                offset = fill.range.upperBound
            case .awaited, .unavailable: return false
            }
        }
        return true
    }
}

struct NoHole: Error {}

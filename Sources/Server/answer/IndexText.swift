import Caching
import Compression
import Forwarding
import Releases
import Storage

/// The text of a stored index: its bytes without their content coding. Reading it may block, and takes some milliseconds for each megabyte.
struct IndexText: Sendable {
    let body: Body
    let coding: StoredCoding

    enum Problem: Error {
        case tooLarge, gone, coding

        var text: String {
            switch self {
            case .tooLarge: "it has more than \(FilteredIndex.bytesMax >> 20) MiB"
            case .gone: "its bytes have left the store"
            case .coding: "its content coding is not known, or its bytes are not in it"
            }
        }
    }

    private func read() throws(Problem) -> [UInt8] {
        let length = body.length
        guard length <= FilteredIndex.bytesMax else { throw .tooLarge }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(length)
        guard unsafe body.readAll({ unsafe bytes.append(contentsOf: $0) }) else { throw .gone }
        return bytes
    }

    func decoded() throws(Problem) -> [UInt8] {
        let bytes = try read()
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
}

/// How far a stream may expand before it counts as a decompression bomb.
package struct InflateBounds: Sendable, Equatable {
    /// Bytes that may come out in all.
    package var outputMax: Int
    /// Bytes that may come out for each that went in. Deflate itself ends at about 1032.
    package var ratioMax: Int
    /// Up to so many bytes the ratio does not matter: small files of zeros are harmless.
    package var outputFree: Int

    package init(outputMax: Int = .max, ratioMax: Int = 1000, outputFree: Int = 64 << 20) {
        precondition(outputMax >= 0 && ratioMax > 0 && outputFree >= 0, "bounds are not negative")
        self.outputMax = outputMax
        self.ratioMax = ratioMax
        self.outputFree = outputFree
    }

    func allow(_ output: Int, from input: Int) -> Bool {
        guard output <= outputMax else { return false }
        return output <= outputFree || output / ratioMax <= input
    }
}

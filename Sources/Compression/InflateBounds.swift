/// How far a stream may expand before it is refused as a decompression bomb.
package struct InflateBounds: Sendable, Equatable {
    /// The most bytes of output.
    package var outputMax: Int
    /// The most bytes of output for each byte of input. Deflate itself reaches at most about 1032.
    package var ratioMax: Int
    /// Up to so many bytes of output the ratio does not matter: small files of zeros are harmless.
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

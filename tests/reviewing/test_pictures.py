"""Images of rows, for the page."""

import numpy as np

from mtbayes.reviewing.pictures import Pixels, png


def test_pixels_as_png(tmp_path):
    image = np.arange(64.0).reshape(1, 8, 8)
    data, kind = Pixels(image).image(0)
    assert kind == "image/png"
    path = tmp_path / "image.png"
    path.write_bytes(data)
    import matplotlib.image

    found = matplotlib.image.imread(path)
    np.testing.assert_allclose(found, image[0] / 63, atol=1 / 255)
    assert png(np.zeros((2, 3), np.uint8)).startswith(b"\x89PNG")

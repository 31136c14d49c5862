#!/usr/bin/env python3
"""Writes golden/*.ppm: what Pillow and torchvision make of a picture (sample.h draws the same). Needs pillow, torch and torchvision;
the files are kept, so that tests need none of them. Pictures of one file stand below each other."""
import pathlib

import numpy
import torch
from PIL import Image
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F

GOLDEN = pathlib.Path(__file__).resolve().parent / "golden"
WIDTH, HEIGHT = 41, 31


def sample():
    """Blocks, a slope and noise by a formula in whole numbers."""
    y, x, c = numpy.meshgrid(numpy.arange(HEIGHT), numpy.arange(WIDTH), numpy.arange(3), indexing="ij")
    noise = (x * 7919 + y * 104729 + c * 1299709 + x * y * 31) % 61
    block = ((x // 9 + y // 7 + c) % 3) * 60
    return (block + x + noise).astype(numpy.uint8)


def write(name, pictures):
    pixels = numpy.concatenate([numpy.asarray(picture) for picture in pictures])
    with open(GOLDEN / f"{name}.ppm", "wb") as file:
        file.write(b"P6 %d %d 255\n" % (pixels.shape[1], pixels.shape[0]) + pixels.astype(numpy.uint8).tobytes())


def tensor(array):
    return torch.from_numpy(array.copy()).permute(2, 0, 1)


def array(picture):
    return picture.permute(1, 2, 0).numpy()


def main():
    picture, bytes_ = Image.fromarray(sample()), tensor(sample())
    for name, size in (("down", (17, 23)), ("up", (90, 71)), ("mixed", (100, 11))):
        write(f"resize_{name}", [picture.resize(size, mode) for mode in (Image.Resampling.BILINEAR, Image.Resampling.BICUBIC)])
    write("resize_box", [picture.resize((24, 20), Image.Resampling.BILINEAR, (3, 5, 30, 24)),
                         picture.resize((24, 20), Image.Resampling.BICUBIC, (1.5, 2.25, 39.5, 29.75))])
    # Resized to 20, the middle taken, as evaluation does it.
    write("centre", [F.center_crop(F.resize(picture, 20, antialias=True), [16, 16])])
    write("resized_crop", [F.resized_crop(picture, 5, 3, 19, 27, [16, 16], antialias=True)])
    adjusts = (F.adjust_brightness, F.adjust_contrast, F.adjust_saturation)
    write("colour", [array(adjust(bytes_, factor)) for adjust in adjusts for factor in (0.55, 1.3)] +
          [array(F.adjust_hue(bytes_, shift)) for shift in (-0.31, 0.12)])
    randaugment = v2.RandAugment()
    made = []
    for name, (magnitudes, signed) in randaugment._AUGMENTATION_SPACE.items():
        values = magnitudes(31, HEIGHT, WIDTH)
        for sign in (1, -1):
            magnitude = 0.0 if values is None else float(values[9]) * (sign if signed else 1)
            made.append(array(randaugment._apply_image_or_video_transform(
                bytes_, name, magnitude, interpolation=v2.InterpolationMode.NEAREST, fill=randaugment._fill)))
    write("rand_augment", made)


main()

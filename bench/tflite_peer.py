#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Networks of Keras as TFLite files, by TensorFlow's own converter, in the Python that has it.

    python3 bench/tflite_peer.py NETWORK SAMPLES.npy FLOAT.tflite INT8.tflite

Weights are random: times do not depend on them. Samples are written, as the converter got them."""
import sys

import numpy as np
import tensorflow as tf

SAMPLES = 16
IMAGE = (224, 224, 3)


def resnet8():
    """The network of MLPerf Tiny's image classification."""
    layers = tf.keras.layers

    def conv(x, filters, size, strides=1):
        x = layers.Conv2D(filters, size, strides, padding="same")(x)
        return layers.BatchNormalization()(x)

    inputs = x = tf.keras.Input((32, 32, 3))
    x = layers.ReLU()(conv(x, 16, 3))
    for filters, strides in ((16, 1), (32, 2), (64, 2)):
        y = layers.ReLU()(conv(x, filters, 3, strides))
        y = conv(y, filters, 3)
        x = x if strides == 1 else layers.Conv2D(filters, 1, strides, padding="same")(x)
        x = layers.ReLU()(layers.Add()([x, y]))
    x = layers.Flatten()(layers.AveragePooling2D(8)(x))
    return tf.keras.Model(inputs, layers.Dense(10, activation="softmax")(x))


def application(name):
    return lambda: getattr(tf.keras.applications, name)(input_shape=IMAGE, weights=None)


NETWORKS = {
    "ResNet8": resnet8,
    "MobileNetV2": application("MobileNetV2"),
    "MobileNetV3Small": application("MobileNetV3Small"),
    "ResNet50": application("ResNet50"),
}


def main():
    network, samples, plain, integers = sys.argv[1:]
    tf.keras.utils.set_random_seed(0)
    model = NETWORKS[network]()
    x = np.random.default_rng(0).uniform(-1, 1, (SAMPLES, *model.input_shape[1:]))
    x = x.astype(np.float32)
    np.save(samples, x)
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    with open(plain, "wb") as file:
        file.write(converter.convert())
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([x[i:i + 1]] for i in range(SAMPLES))
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    with open(integers, "wb") as file:
        file.write(converter.convert())


if __name__ == "__main__":
    main()

"""Tiny detectors and segmenters with random weights, saved as transformers saves them."""

from pathlib import Path
from typing import Any

WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", ".", "?", "red", "car", "dog", "cat", "umbrella")


def save_owlv2(folder: Path) -> Path:
    import torch
    from transformers import (
        Owlv2Config,
        Owlv2ForObjectDetection,
        Owlv2ImageProcessor,
        Owlv2Processor,
    )

    from eqforge.generators.diffusion.tiny import make_tokenizer

    torch.manual_seed(0)
    tokenizer = make_tokenizer(16)
    text = {
        "vocab_size": len(tokenizer), "hidden_size": 16, "intermediate_size": 32,
        "num_hidden_layers": 1, "num_attention_heads": 2, "max_position_embeddings": 16,
        "bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }  # fmt: skip
    vision = {
        "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1,
        "num_attention_heads": 2, "image_size": 48, "patch_size": 16,
    }  # fmt: skip
    config = Owlv2Config(text_config=text, vision_config=vision, projection_dim=16)
    Owlv2ForObjectDetection(config).save_pretrained(folder)
    image = Owlv2ImageProcessor(size={"height": 48, "width": 48})
    Owlv2Processor(image_processor=image, tokenizer=tokenizer).save_pretrained(folder)
    return folder


def save_grounding_dino(folder: Path) -> Path:
    import torch
    import transformers
    from transformers import (
        BertConfig,
        GroundingDinoConfig,
        GroundingDinoForObjectDetection,
        GroundingDinoImageProcessor,
        GroundingDinoProcessor,
        SwinConfig,
    )

    torch.manual_seed(0)
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = folder / "words.txt"
    vocabulary.write_text("\n".join(WORDS))
    bert: Any = transformers
    tokenizer = bert.BertTokenizerFast(vocab_file=str(vocabulary))
    vocabulary.unlink()
    swin: Any = SwinConfig
    backbone = swin(
        image_size=64, patch_size=4, embed_dim=8, depths=[1, 1, 1, 1], num_heads=[1, 1, 2, 2],
        window_size=2, out_features=["stage2", "stage3", "stage4"],
    )  # fmt: skip
    text = BertConfig(
        vocab_size=len(WORDS), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=32,
    )  # fmt: skip
    dino: Any = GroundingDinoConfig
    config = dino(
        backbone_config=backbone, text_config=text, num_queries=12, encoder_layers=1,
        encoder_ffn_dim=32, encoder_attention_heads=2, decoder_layers=2, decoder_ffn_dim=32,
        decoder_attention_heads=2, d_model=32, max_text_len=32, num_feature_levels=4,
        use_timm_backbone=False,
    )  # fmt: skip
    GroundingDinoForObjectDetection(config).save_pretrained(folder)
    image = GroundingDinoImageProcessor(size={"shortest_edge": 48, "longest_edge": 96})
    GroundingDinoProcessor(image_processor=image, tokenizer=tokenizer).save_pretrained(folder)
    return folder


def save_sam(folder: Path) -> Path:
    import torch
    from transformers import (
        SamConfig,
        SamImageProcessor,
        SamMaskDecoderConfig,
        SamModel,
        SamProcessor,
        SamPromptEncoderConfig,
        SamVisionConfig,
    )

    torch.manual_seed(0)
    vision = SamVisionConfig(
        hidden_size=16, output_channels=16, num_hidden_layers=1, num_attention_heads=2,
        image_size=64, patch_size=16, mlp_dim=32, window_size=2, global_attn_indexes=[0],
        num_pos_feats=8,
    )  # fmt: skip
    prompt = SamPromptEncoderConfig(
        hidden_size=16, image_size=64, patch_size=16, mask_input_channels=4
    )
    decoder = SamMaskDecoderConfig(
        hidden_size=16,
        mlp_dim=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        iou_head_hidden_dim=16,
    )
    config = SamConfig(
        vision_config=vision, prompt_encoder_config=prompt, mask_decoder_config=decoder
    )
    SamModel(config).save_pretrained(folder)
    image = SamImageProcessor(
        size={"longest_edge": 64}, pad_size={"height": 64, "width": 64},
        mask_size={"longest_edge": 16}, mask_pad_size={"height": 16, "width": 16},
    )  # fmt: skip
    SamProcessor(image_processor=image).save_pretrained(folder)
    return folder


def save_sam2(folder: Path) -> Path:
    import torch
    from transformers import (
        Sam2Config,
        Sam2HieraDetConfig,
        Sam2ImageProcessor,
        Sam2MaskDecoderConfig,
        Sam2Model,
        Sam2Processor,
        Sam2PromptEncoderConfig,
        Sam2VisionConfig,
    )

    torch.manual_seed(0)
    backbone = Sam2HieraDetConfig(
        hidden_size=8, num_attention_heads=1, image_size=[64, 64], patch_stride=[4, 4],
        blocks_per_stage=[1, 1, 1, 1], embed_dim_per_stage=[8, 16, 32, 64],
        num_attention_heads_per_stage=[1, 1, 2, 2], window_size_per_stage=[4, 4, 4, 4],
        global_attention_blocks=[], window_positional_embedding_background_size=[4, 4],
    )  # fmt: skip
    vision = Sam2VisionConfig(
        backbone_config=backbone, backbone_channel_list=[64, 32, 16, 8], fpn_hidden_size=16,
        backbone_feature_sizes=[[16, 16], [8, 8], [4, 4]],
    )  # fmt: skip
    prompt = Sam2PromptEncoderConfig(hidden_size=16, image_size=64, patch_size=16)
    decoder = Sam2MaskDecoderConfig(
        hidden_size=16,
        mlp_dim=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        iou_head_hidden_dim=16,
    )
    config: Any = Sam2Config(
        vision_config=vision, prompt_encoder_config=prompt, mask_decoder_config=decoder
    )
    Sam2Model(config).save_pretrained(folder)
    image = Sam2ImageProcessor(
        size={"height": 64, "width": 64}, mask_size={"height": 16, "width": 16}
    )
    Sam2Processor(image_processor=image).save_pretrained(folder)
    return folder
